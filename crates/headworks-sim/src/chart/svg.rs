//! A run as SVG, for a page or a file of its own.

use super::axis::{self, Axis};
use super::columns::{Columns, last};
use super::{Chart, Rates};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;

/// Where both panels begin and end; what is right of them belongs to the names of the lines.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 846.0;

/// The rows for the labels of marks, by their baselines, the one nearest to the panels first.
const MARK_ROWS: [f64; 2] = [68.0, 53.0];

/// Two pixels a column; more could not be told apart.
const COLUMNS: usize = 391;

/// What a character is taken to be wide, in the small text of labels. A little much, so that no two ever touch.
const CHARACTER: f64 = 6.2;

/// Where the names of lines begin.
const NAMES: f64 = RIGHT + 38.0;

/// The names of lines are at least this far from each other.
const NAME_DISTANCE: f64 = 17.0;

const STYLE: &str = include_str!("style.css");

pub(super) fn draw(chart: &Chart<'_>) -> String {
    let columns = Columns::of(chart, chart.samples().clamp(1, COLUMNS));
    let rates = chart.rates(5);
    let upper = Panel { top: 78.0, bottom: 288.0, axis: rates.axis };
    let lower = Panel { top: 316.0, bottom: 378.0, axis: Axis { top: 1.0, tick: 0.5 } };
    let time = Axis::ending_at(chart.seconds(), 10);
    let (lines, labels) = marks(chart, time, lower.bottom);
    let parts = [
        head(chart, &columns, &rates),
        upper.grid(axis::rate),
        lower.grid(axis::percent),
        time_axis(time, &upper, &lower),
        text(LEFT - 8.0, upper.top - 12.0, "tick end", "units/s"),
        lines,
        series(&columns, &upper),
        above(&columns, &rates, &upper),
        lower.area("dropped", &columns.ratio),
        path("dropped line", &lower.curve(&columns.ratio)),
        text(NAMES, lower.y(0.5) + 4.0, "dropped name", "drop ratio"),
        labels,
        "</svg>\n".to_owned(),
    ];
    parts.concat()
}

/// The document's beginning: what it is, in words, for those who do not see it; then its style and title.
fn head(chart: &Chart<'_>, columns: &Columns, rates: &Rates) -> String {
    let title = escape(chart.title);
    let shown = escape(&shorten(chart.title, 100));
    let describe = escape(&description(chart, columns, rates));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hw\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\">\n<title>{title}</title>\n<desc>{describe}</desc>\n\
         <style>\n{STYLE}</style>\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\"/>\n{}",
        text(20.0, 31.0, "title", &shown)
    )
}

fn description(chart: &Chart<'_>, columns: &Columns, rates: &Rates) -> String {
    let peak = |series| super::columns::peak(series).map_or("unknown".to_owned(), axis::rate);
    let limit = columns.limit.iter().rev().flatten().find(|limit| limit.is_finite());
    let limit = limit.map_or("no limit".to_owned(), |limit| format!("a limit of {}", axis::rate(*limit)));
    let dropped =
        super::columns::peak(chart.ratio).map_or("unknown".to_owned(), |ratio| axis::percent(ratio.min(1.0)));
    let cut = if rates.above.is_some() { " The axis ends below the peak of offered." } else { "" };
    let marks: String = chart
        .marks
        .iter()
        .map(|(at, what)| format!(" At {}: {what}.", axis::seconds(at.as_secs_f64())))
        .collect();
    format!(
        "{} of units per second, with {limit}. Peaks: offered {}, admitted {}, drop ratio {dropped}.{cut}{marks}",
        axis::seconds(chart.seconds()),
        peak(chart.offered),
        peak(chart.admitted),
    )
}

/// A panel across the whole width, with an axis from its bottom to its top.
struct Panel {
    top: f64,
    bottom: f64,
    axis: Axis,
}

impl Panel {
    fn y(&self, figure: f64) -> f64 {
        self.bottom - self.axis.share(figure) * (self.bottom - self.top)
    }

    fn grid(&self, label: fn(f64) -> String) -> String {
        let tick = |tick: f64| {
            let y = self.y(tick);
            let class = if tick > 0.0 { "grid" } else { "axis" };
            line(class, (LEFT, y), (RIGHT, y)) + &text(LEFT - 8.0, y + 4.0, "tick end", &label(tick))
        };
        self.axis.ticks().map(tick).collect()
    }

    /// The path of a line through the middle of each column, from the left edge of the first to the right edge of the
    /// last known.
    fn curve(&self, figures: &[Option<f64>]) -> String {
        runs(figures).map(|run| format!("M{}", points(&self.through(run, figures.len())))).collect()
    }

    /// The path of a line that is level in each column.
    fn stairs(&self, figures: &[Option<f64>]) -> String {
        let corners = |(first, run): (usize, Vec<f64>)| {
            let corner = |n: usize, figure| (edge(first + n, figures.len()), self.y(figure));
            let both = |(n, figure): (usize, &f64)| [corner(n, *figure), corner(n + 1, *figure)];
            format!("M{}", points(&run.iter().enumerate().flat_map(both).collect::<Vec<_>>()))
        };
        runs(figures).map(corners).collect()
    }

    /// What is below a curve, filled.
    fn area(&self, class: &str, figures: &[Option<f64>]) -> String {
        let below = |run: (usize, Vec<f64>)| {
            let line = self.through(run, figures.len());
            let ends = line.first().zip(line.last()).map(|(first, last)| [first.0, last.0]);
            let [from, to] = ends.unwrap_or([LEFT, LEFT]).map(number);
            let bottom = number(self.bottom);
            format!("M{from} {bottom}L{}L{to} {bottom}Z", points(&line))
        };
        path(&format!("{class} area"), &runs(figures).map(below).collect::<String>())
    }

    fn through(&self, (first, run): (usize, Vec<f64>), columns: usize) -> Vec<(f64, f64)> {
        let y = |figure: Option<&f64>| figure.map_or(self.bottom, |figure| self.y(*figure));
        let middle = |(n, figure): (usize, &f64)| {
            ((edge(first + n, columns) + edge(first + n + 1, columns)) / 2.0, self.y(*figure))
        };
        let mut points = vec![(edge(first, columns), y(run.first()))];
        points.extend(run.iter().enumerate().map(middle));
        points.push((edge(first + run.len(), columns), y(run.last())));
        points
    }
}

/// The left edge of a column.
fn edge(column: usize, columns: usize) -> f64 {
    LEFT + (RIGHT - LEFT) * column as f64 / columns.max(1) as f64
}

/// Stretches without a gap, each with its first column.
fn runs(figures: &[Option<f64>]) -> impl Iterator<Item = (usize, Vec<f64>)> {
    let mut next = 0;
    let stretches = figures.chunk_by(|one, other| one.is_some() == other.is_some());
    stretches
        .map(move |stretch| {
            let first = next;
            next += stretch.len();
            (first, stretch.iter().copied().flatten().collect::<Vec<_>>())
        })
        .filter(|(_, run)| !run.is_empty())
}

/// The lines of the rates, and their names at the right, where each line ends.
fn series(columns: &Columns, panel: &Panel) -> String {
    let limit: Vec<_> = columns.limit.iter().map(|limit| limit.filter(|limit| limit.is_finite())).collect();
    let drawn = [
        ("offered", panel.curve(&columns.offered), &columns.offered),
        ("limit", panel.stairs(&limit), &limit),
        ("admitted", panel.curve(&columns.admitted), &columns.admitted),
    ];
    // Names of lines that end together stand in this order; the lines lie in the other, broken ones above whole ones.
    let paths: String =
        drawn.iter().rev().map(|(name, curve, _)| path(&format!("{name} line"), curve)).collect();
    let end = |figures: &[Option<f64>]| last(&figures.iter().copied().flatten().collect::<Vec<_>>());
    let ends = drawn.iter().filter_map(|(name, _, figures)| Some((*name, panel.y(end(figures)?)))).collect();
    panel.area("admitted", &columns.admitted) + &paths + &names(ends, panel)
}

/// The names of lines, each with a piece of its line that leads to it, and far enough from each other to be read.
fn names(mut ends: Vec<(&str, f64)>, panel: &Panel) -> String {
    ends.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut places: Vec<f64> = Vec::new();
    for (_, end) in &ends {
        places.push(places.last().map_or(*end, |above| end.max(above + NAME_DISTANCE)));
    }
    // Those pushed below the panel push back.
    let mut lowest = panel.bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(lowest);
        lowest = *place - NAME_DISTANCE;
    }
    let name = |((name, end), place): (&(&str, f64), &f64)| {
        let lead = points(&[(RIGHT + 2.0, *end), (RIGHT + 10.0, *place), (NAMES - 6.0, *place)]);
        path(&format!("{name} line"), &format!("M{lead}"))
            + &text(NAMES, place + 4.0, &format!("{name} name"), name)
    };
    ends.iter().zip(&places).map(name).collect()
}

/// Arrows where offered is above the axis, and, at its peak, how far it went.
fn above(columns: &Columns, rates: &Rates, panel: &Panel) -> String {
    let count = columns.offered_peak.len();
    let above: Vec<_> =
        columns.offered_peak.iter().map(|peak| peak.filter(|peak| *peak > rates.axis.top)).collect();
    let mut highest = (0.0, 0.0);
    let mut arrows = String::new();
    for (first, run) in runs(&above) {
        let middle = (edge(first, count) + edge(first + run.len(), count)) / 2.0;
        let peak = run.iter().copied().fold(0.0, f64::max);
        if peak > highest.0 {
            highest = (peak, middle);
        }
        let (left, right) = (number(middle - 5.0), number(middle + 5.0));
        let (tip, base) = (number(panel.top + 3.0), number(panel.top + 12.0));
        arrows.push_str(&format!("M{left} {base}L{} {tip}L{right} {base}Z", number(middle)));
    }
    let note = rates.note().map_or(String::new(), |note| {
        let fits = highest.1 + 12.0 + note.chars().count() as f64 * CHARACTER < RIGHT;
        let (x, class) = if fits { (highest.1 + 10.0, "note") } else { (highest.1 - 10.0, "note end") };
        text(x, panel.top + 13.0, class, &note)
    });
    path("arrow", &arrows) + &note
}

/// Ticks of both panels, with the times below the lower.
fn time_axis(time: Axis, upper: &Panel, lower: &Panel) -> String {
    let tick = |tick: f64| {
        let x = LEFT + time.share(tick) * (RIGHT - LEFT);
        let lines: String =
            [upper, lower].map(|panel| line("axis", (x, panel.bottom), (x, panel.bottom + 4.0))).concat();
        lines + &text(x, lower.bottom + 19.0, "tick middle", &axis::seconds(tick))
    };
    time.ticks().map(tick).collect()
}

/// The lines of the marks, and apart from them their labels, which belong above everything else.
fn marks(chart: &Chart<'_>, time: Axis, bottom: f64) -> (String, String) {
    let mut ends = MARK_ROWS.map(|_| LEFT);
    let (mut lines, mut labels) = (String::new(), String::new());
    for (at, what) in chart.marks.iter().filter(|(at, _)| at.as_secs_f64() <= time.top) {
        let x = LEFT + time.share(at.as_secs_f64()) * (RIGHT - LEFT);
        let label = shorten(what, 40);
        let width = label.chars().count() as f64 * CHARACTER;
        // Left of its line where the page ends.
        let before = x + width + 8.0 > WIDTH;
        let from = if before { x - 5.0 - width } else { x + 5.0 };
        let row = ends.iter().position(|end| from > *end);
        let top = row.map_or(MARK_ROWS[0] + 4.0, |row| MARK_ROWS[row] - 8.0);
        let hint = escape(&format!("{}: {what}", axis::seconds(at.as_secs_f64())));
        let (x1, y1, y2) = (number(x), number(top), number(bottom));
        lines.push_str(&format!("<path class=\"mark\" d=\"M{x1} {y1}V{y2}\"><title>{hint}</title></path>\n"));
        if let Some(row) = row {
            ends[row] = from + width + 8.0;
            labels.push_str(&text(from, MARK_ROWS[row], "event", &escape(&label)));
        }
    }
    (lines, labels)
}

fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
    path(class, &format!("M{x1} {y1}L{x2} {y2}"))
}

fn path(class: &str, data: &str) -> String {
    if data.is_empty() { String::new() } else { format!("<path class=\"{class}\" d=\"{data}\"/>\n") }
}

/// Text that is escaped already.
fn text(x: f64, y: f64, class: &str, escaped: &str) -> String {
    format!("<text x=\"{}\" y=\"{}\" class=\"{class}\">{escaped}</text>\n", number(x), number(y))
}

/// The points of a line, without those in the middle of a level stretch.
fn points(points: &[(f64, f64)]) -> String {
    let rounded: Vec<_> = points.iter().map(|(x, y)| (number(*x), number(*y))).collect();
    let level = |n: usize| {
        let y = |n: usize| rounded.get(n).map(|point| &point.1);
        n > 0 && y(n - 1) == y(n) && y(n) == y(n + 1)
    };
    let kept = rounded.iter().enumerate().filter(|(n, _)| !level(*n));
    kept.map(|(_, (x, y))| format!("{x} {y}")).collect::<Vec<_>>().join("L")
}

/// A place, with two decimals: finer is not seen, and equal figures give equal text.
fn number(figure: f64) -> String {
    axis::decimal(figure)
}

/// Text of at most this many characters.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Text as XML takes it. Characters that no XML document may hold become blanks.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            char if char.is_control() => escaped.push(' '),
            char => escaped.push(char),
        }
    }
    escaped
}
