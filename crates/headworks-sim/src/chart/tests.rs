use super::*;

const WIDTHS: [usize; 4] = [0, 21, 80, 200];
const HEIGHTS: [usize; 2] = [0, 25];

fn chart<'a>(offered: &'a [f64], admitted: &'a [f64], limit: &'a [f64], ratio: &'a [f64]) -> Chart<'a> {
    Chart { title: "a run", step: Duration::from_secs(1), offered, admitted, limit, ratio, marks: &[] }
}

fn marks(marks: &[(u64, &str)]) -> Vec<(Duration, String)> {
    marks.iter().map(|(at, what)| (Duration::from_secs(*at), (*what).to_owned())).collect()
}

/// Calls `check` with charts that nobody would draw on purpose.
fn odd_charts(check: impl Fn(&Chart<'_>)) {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e-300, 1e300, f64::MAX, 5.0];
    let all_nan = [f64::NAN; 3];
    let endless = [f64::INFINITY; 3];
    let long: Vec<f64> = (0..1009).map(f64::from).collect();
    let series: [&[f64]; 7] = [&[], &[5.0], &[0.0; 3], &odd, &all_nan, &endless, &long];
    let many: Vec<_> = (0..90).map(|n| (Duration::from_secs(n), format!("event {n}"))).collect();
    let strange =
        marks(&[(0, ""), (3, "the end"), (1_000_000, "late"), (1, "a\nb\u{7}\u{1b}[31m"), (u64::MAX, "<&>")]);
    let times = [(&many, Duration::from_millis(100)), (&strange, Duration::ZERO), (&strange, Duration::MAX)];
    for (offered, admitted) in series.iter().flat_map(|one| series.map(|other| (*one, other))) {
        for (limit, ratio) in [(series[0], offered), (series[3], series[3]), (admitted, series[4])] {
            for (marks, step) in times {
                check(&Chart { marks, step, ..chart(offered, admitted, limit, ratio) });
            }
        }
    }
    let title = "word ".repeat(50) + &"unbroken".repeat(50);
    check(&Chart { title: &title, step: Duration::from_nanos(1), ..chart(&[], &[], &[], &[]) });
}

/// The text of the row where a label of the axis stands.
fn row<'a>(drawing: &'a str, label: &str) -> &'a str {
    drawing.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap()
}

#[test]
fn text_keeps_to_its_width_whatever_the_run() {
    odd_charts(|chart| {
        for (width, height) in WIDTHS.into_iter().flat_map(|width| HEIGHTS.map(|height| (width, height))) {
            let drawing = chart.to_text(width, height);
            for line in drawing.lines() {
                assert!(line.chars().count() <= width.max(20), "{width}: {line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
        }
    });
}

#[test]
fn text_of_any_size_is_drawn() {
    let chart = chart(&[9.0, f64::NAN, 1.0], &[1.0; 3], &[1.0; 2], &[0.9]);
    assert_eq!(chart.to_text(0, 0), chart.to_text(20, 8));
    assert_eq!(chart.to_text(usize::MAX, usize::MAX), chart.to_text(500, 200));
}

#[test]
fn svg_is_well_formed_whatever_the_run() {
    odd_charts(|chart| {
        let svg = chart.to_svg();
        assert_balanced(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    });
}

/// Every tag that opens closes again, in order; attributes are in quotes; no stray `<` or `&` is left.
fn assert_balanced(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        assert!(!text.contains('>'), "{text}");
        assert!(text.split('&').skip(1).all(|entity| entity.split_once(';').is_some()), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{svg}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn offered_far_above_the_limit_is_cut_off_and_said() {
    let chart =
        chart(&[1000.0, 367_000.0, 1000.0], &[1000.0, 5000.0, 1000.0], &[5000.0; 3], &[0.0, 0.99, 0.0]);
    let text = chart.to_text(80, 24);
    assert!(text.contains("↑"), "{text}");
    assert!(row(&text, "20k").contains("offered up to 367k"), "{text}");
    assert!(chart.to_svg().contains(">offered up to 367k</text>"));
    assert!(chart.to_text(20, 8).contains("\n↑ offered up to 367k\n"), "{}", chart.to_text(20, 8));
}

#[test]
fn the_axis_reaches_what_was_admitted_even_beyond_four_limits() {
    let text = chart(&[900_000.0; 2], &[70_000.0, 5000.0], &[5000.0; 2], &[]).to_text(80, 24);
    assert!(row(&text, "80k").contains("offered up to 900k"), "{text}");
}

#[test]
fn nothing_is_cut_off_without_a_limit_or_with_little_excess() {
    for limit in [vec![], vec![f64::INFINITY; 2], vec![100.0; 2]] {
        let chart = chart(&[450.0, 10.0], &[100.0, 10.0], &limit, &[]);
        assert!(!chart.to_text(80, 24).contains("up to"), "{limit:?}");
        assert!(!chart.to_svg().contains("up to"), "{limit:?}");
    }
}

#[test]
fn a_peak_of_one_sample_in_thousands_is_seen() {
    let mut admitted = vec![10.0; 5000];
    admitted[2500] = 100.0;
    let text = chart(&[], &admitted, &[], &[]).to_text(60, 16);
    assert!(row(&text, "75┤").contains('█'), "{text}");

    let mut offered = vec![10.0; 5000];
    offered[2500] = 100_000.0;
    let text = chart(&offered, &[], &[10.0; 5000], &[]).to_text(60, 16);
    assert_eq!(text.matches('↑').count(), 1, "{text}");
}

#[test]
fn the_limit_stands_on_what_is_admitted_up_to_it() {
    let text = chart(&[40.0; 4], &[10.0; 4], &[10.0; 4], &[]).to_text(40, 16);
    assert!(row(&text, "10").ends_with("──────────"), "{text}");
    assert!(row(&text, "0┤").starts_with("██████████"), "{text}");
}

#[test]
fn an_excess_over_the_limit_pokes_through_its_line() {
    let text = chart(&[11.0, 10.0], &[11.0, 10.0], &[10.0; 2], &[]).to_text(40, 16);
    let row = row(&text, "10┤");
    assert!(!row.starts_with('─') && row.ends_with('─'), "{text}");
}

#[test]
fn marks_share_letters_between_axis_and_legend() {
    let marks = marks(&[(2, "controller killed"), (2, "zone cut"), (9, "after the end")]);
    let text = Chart { marks: &marks, ..chart(&[1.0; 4], &[], &[], &[]) }.to_text(47, 16);
    assert!(text.contains("─AB─"), "{text}");
    assert!(text.contains("A  2 s  controller killed\nB  2 s  zone cut\nC  9 s  after the end\n"), "{text}");
    assert!(!text.contains("C─"), "{text}");
}

#[test]
fn titles_and_marks_are_escaped_in_svg() {
    assert_eq!(svg::escape("<a href=\"x\">&'\u{1}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39; ");
    let marks = marks(&[(1, "<b>&</b>")]);
    let svg = Chart { title: "</title><script>", marks: &marks, ..chart(&[1.0; 4], &[], &[], &[]) }.to_svg();
    assert!(svg.contains("<title>&lt;/title&gt;&lt;script&gt;</title>"), "{svg}");
    assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
    assert_balanced(&svg);
}

#[test]
fn svg_says_in_words_what_it_shows() {
    let marks = marks(&[(3, "surge")]);
    let chart = Chart { marks: &marks, ..chart(&[10.0, 4e4], &[10.0, 400.0], &[400.0; 2], &[0.0, 0.99]) };
    let svg = chart.to_svg();
    assert!(svg.starts_with("<svg ") && svg.contains("role=\"img\""));
    let words = "<desc>2 s of units per second, with a limit of 400. Peaks: offered 40k, admitted 400, drop ratio 99 %. \
                 The axis ends below the peak of offered. At 3 s: surge.</desc>";
    assert!(svg.contains(words), "{svg}");
    assert_eq!(svg, chart.to_svg());
}

#[test]
fn rates_are_written_short() {
    let cases =
        [(0.0, "0"), (0.25, "0.25"), (250.0, "250"), (999.7, "1k"), (5000.0, "5k"), (12_500.0, "12.5k")];
    let larger = [
        (999_950.0, "1M"),
        (1_234_567.0, "1.23M"),
        (2e9, "2G"),
        (3e12, "3T"),
        (1e16, "1e16"),
        (1e-5, "1e-5"),
    ];
    for (figure, written) in cases.into_iter().chain(larger) {
        assert_eq!(axis::rate(figure), written);
    }
}

#[test]
fn ticks_are_round_and_reach_the_top() {
    for (max, top, tick) in [(20_000.0, 20_000.0, 5000.0), (0.3, 0.3, 0.1), (0.0, 1.0, 0.25), (7.0, 8.0, 2.0)]
    {
        let axis = Axis::up_to(max, 4);
        assert!((axis.top - top).abs() < 1e-9 && (axis.tick - tick).abs() < 1e-9, "{max}: {axis:?}");
        assert!((axis.ticks().last().unwrap() - top).abs() < 1e-9, "{max}");
    }
}
