//! The screen: who is asked, what should be known at once, the limits, and the values of the one that is selected.

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::args::Column;
use super::view::View;
use crate::legible;
use crate::status::{LimitView, NodeStatus, State, safe, spelled_bucket, spelled_rate};

/// Values shown of the limit that is selected.
const VALUES: usize = 5;
/// Bytes shown of a notice.
const LONGEST: usize = 400;
/// Columns of a screen that has room for the last looks.
const ROOMY: u16 = 130;

/// The columns in their order on the screen: their titles, and how wide they are; the name has what is left.
pub(super) const HEADS: [(Column, &str, u16); 7] = [
    (Column::State, "STATE", 13),
    (Column::Name, "LIMIT", 0),
    (Column::Offered, "OFFERED", 12),
    (Column::Admitted, "ADMITTED", 12),
    (Column::Dropped, "DROPPED", 12),
    (Column::Ratio, "RATIO", 7),
    (Column::Buckets, "BUCKETS", 8),
];
const SOFT: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const ALARM: Style = Style::new().fg(Color::LightRed).add_modifier(Modifier::BOLD);

pub(super) fn draw(frame: &mut Frame<'_>, view: &mut View, now: Instant) {
    let notices = notices(view, now);
    let values = values(view);
    let height = |lines: usize| Constraint::Length(u16::try_from(lines).unwrap_or(u16::MAX));
    let parts = [height(2), height(notices.len()), Constraint::Min(3), height(values.len()), height(1)];
    let [head, told, table, below, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(view)), head);
    frame.render_widget(Paragraph::new(notices), told);
    draw_limits(frame, table, view);
    frame.render_widget(Paragraph::new(values), below);
    frame.render_widget(Paragraph::new(foot_line(view)), foot);
}

fn head_lines(view: &View) -> Vec<Line<'static>> {
    let NodeStatus { tier, node, state, limits_generation, .. } = &view.status;
    let digest = view.status.limits_digest.as_deref().map(|digest| format!(", {:.12}", safe(digest)));
    let who = Line::from(vec![
        Span::styled(format!("{} {}", safe(tier), safe(node)), BOLD),
        Span::raw(format!("  plan {}", safe(state))),
        Span::raw(format!("  limits generation {limits_generation}{}", digest.unwrap_or_default())),
        Span::styled(format!("  {}", safe(&view.admin)), SOFT),
    ]);
    vec![who, Line::from(counts(view))]
}

fn counts(view: &View) -> Vec<Span<'static>> {
    let all = &view.status.limits;
    let of = |state: State| all.iter().filter(|limit| view.state_of(limit) == state).count();
    let mut spans = Vec::new();
    for state in [State::Dropping, State::WouldDrop, State::Within, State::Idle] {
        let style = if state == State::Dropping && of(state) > 0 { ALARM } else { Style::new() };
        spans.push(Span::styled(format!("{} {}  ", of(state), state.name()), style));
    }
    let zones = &view.status.zones;
    if !zones.is_empty() {
        let agents: u64 = zones.iter().map(|zone| u64::from(zone.agents)).sum();
        let stale = view.status.children.iter().filter(|child| child.silent).count();
        spans.push(Span::raw(format!("{} zones  {agents} agents  {stale} children stale", zones.len())));
    }
    spans
}

fn notices(view: &View, now: Instant) -> Vec<Line<'static>> {
    let status = &view.status;
    let mut told: Vec<String> = Vec::new();
    if view.lost.is_some() || view.age(now) > view.stale_after {
        let why = view.lost.as_deref().unwrap_or("no answer yet");
        told.push(format!("stale for {} s: {why}", view.age(now).as_secs()));
    }
    if let Some(held) = &status.limits_held {
        let age = held.age_ms / 1000;
        told.push(format!("limits held back for {age} s, until `headworks limits apply` confirms them"));
    }
    for (is_so, text) in [
        (status.shadow_all, "shadow-all is on: nothing is dropped"),
        (status.learning, "learning what was in force before this controller started"),
        (status.views_disagree, "controllers disagree: one hears more of the fleet than another"),
        (status.limits_disagree, "controllers disagree: they go by different limits"),
        (status.twins > 0, "children share their ids: give each node its own --id"),
        (status.store.as_ref().is_some_and(|store| !store.up), "the store of exact limits is away"),
    ] {
        if is_so {
            told.push(text.to_owned());
        }
    }
    told.into_iter().map(|text| Line::styled(format!("! {}", legible::cut(&text, LONGEST)), ALARM)).collect()
}

fn draw_limits(frame: &mut Frame<'_>, area: Rect, view: &mut View) {
    let roomy = area.width >= ROOMY;
    let heads = HEADS.map(|(column, title, _)| head_cell(view, column, title));
    let extra = [Cell::from("RATE"), Cell::from(if roomy { "OFFERED OF LATE" } else { "" })];
    let mut widths: Vec<Constraint> = HEADS
        .iter()
        .map(|(_, _, width)| if *width == 0 { Constraint::Min(20) } else { Constraint::Length(*width) })
        .collect();
    widths.extend([Constraint::Length(16), Constraint::Length(if roomy { 20 } else { 0 })]);
    // Only what is in view is made into rows: there may be a hundred thousand.
    let shown = usize::from(area.height.saturating_sub(1));
    let at = view.table.selected().unwrap_or(0);
    let first = (*view.table.offset_mut()).clamp(at.saturating_sub(shown.saturating_sub(1)), at);
    let rows: Vec<Row<'static>> =
        view.limits().skip(first).take(shown).map(|limit| limit_row(view, limit, roomy)).collect();
    let table = Table::new(rows, widths)
        .header(Row::new(heads.into_iter().chain(extra)).style(SOFT))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut window = ratatui::widgets::TableState::new();
    window.select(view.table.selected().map(|selected| selected - first));
    *view.table.offset_mut() = first;
    frame.render_stateful_widget(table, area, &mut window);
}

fn head_cell(view: &View, column: Column, title: &str) -> Cell<'static> {
    let arrow = match (view.sort == column, view.reverse != (column == Column::Name)) {
        (false, _) => "",
        (true, false) => "↓",
        (true, true) => "↑",
    };
    let cell = Line::styled(
        format!("{title}{arrow}"),
        if arrow.is_empty() { Style::new() } else { BOLD.remove_modifier(Modifier::DIM) },
    );
    Cell::from(match column {
        Column::State | Column::Name => cell,
        _ => cell.alignment(Alignment::Right),
    })
}

fn limit_row(view: &View, limit: &LimitView, roomy: bool) -> Row<'static> {
    let state = view.state_of(limit);
    let style = match state {
        State::Dropping => ALARM,
        State::WouldDrop => Style::new().fg(Color::LightYellow),
        State::Idle | State::Off | State::Exact => SOFT,
        State::Within => Style::new(),
    };
    let over = limit.dropped.max(limit.would_drop);
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    Row::new([
        Cell::from(Span::styled(state.name(), style)),
        Cell::from(safe(&limit.name)),
        right(format!("{:.1}/s", limit.offered)),
        right(format!("{:.1}/s", limit.admitted)),
        right(format!("{over:.1}/s")),
        right(format!("{:.3}", limit.ratio)),
        right(limit.buckets.to_string()),
        Cell::from(spelled_rate(limit)),
        Cell::from(if roomy { view.history.line(limit) } else { String::new() }),
    ])
}

/// The values of the limit that is selected, where it has some.
fn values(view: &View) -> Vec<Line<'static>> {
    let Some(limit) = view.selected() else { return Vec::new() };
    let mut told: Vec<_> = limit.top.iter().collect();
    told.retain(|top| !top.scope.is_empty() || top.values.as_ref().is_none_or(|values| !values.is_empty()));
    if told.is_empty() {
        return Vec::new();
    }
    let title = format!("{}: the values that are offered most", safe(&limit.name));
    let mut lines = vec![Line::default(), Line::styled(title, BOLD)];
    lines.extend(told.into_iter().take(VALUES).map(|top| {
        let offered = format!("{:.1}/s", top.offered);
        Line::from(format!("  {:<45} {offered:>12}  ratio {:.3}", spelled_bucket(top), top.ratio))
    }));
    lines
}

fn foot_line(view: &View) -> Line<'static> {
    if view.typing {
        return Line::from(format!("filter: {}▏  Enter keeps it, Esc forgets it", safe(&view.filter)));
    }
    let filter = match view.filter.as_str() {
        "" => String::new(),
        filter => format!("filter: {}  ", safe(filter)),
    };
    let count = format!("{} of {} limits  ", view.rows.len(), view.status.limits.len());
    Line::styled(format!("{filter}{count}q quit  / filter  ← → sort  r reverse  ↑ ↓ select"), SOFT)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::status::Top;
    use crate::status::fixture::limit;

    const SECOND: Duration = Duration::from_secs(1);
    const EVERY: Duration = Duration::from_secs(3);

    fn drawn(view: &mut View, width: u16, height: u16, now: Instant) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, now)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(usize::from(width));
        lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    fn view(limits: Vec<LimitView>, now: Instant) -> View {
        let mut view = View::new("http://here:1", Column::Dropped, String::new(), EVERY);
        view.take(NodeStatus { limits, tier: "controller".to_owned(), ..NodeStatus::default() }, now);
        view
    }

    #[test]
    fn figures_are_those_of_the_status_in_the_same_form() {
        let now = Instant::now();
        let over = LimitView {
            offered: 600.04,
            admitted: 400.0,
            dropped: 200.04,
            ratio: 1.0 / 3.0,
            amount: Some(400),
            unit: Some("second".to_owned()),
            ..limit("checkout", 600.0)
        };
        let text = drawn(&mut view(vec![over], now), 140, 12, now);
        for part in [
            "controller",
            "1 dropping",
            "checkout",
            "600.0/s",
            "400.0/s",
            "200.0/s",
            "0.333",
            "400/second",
            "█",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn values_from_outside_cannot_move_the_cursor() {
        let now = Instant::now();
        let values = Some(vec!["a\u{1b}]0;t\u{7}\n\u{202e}".to_owned()]);
        let top = Top { scope: Vec::new(), values, offered: 1.0, ratio: 0.5, tokens: None };
        let mut view = view(vec![LimitView { top: vec![top], ..limit("a", 1.0) }], now);
        view.lose("\u{1b}[2J".to_owned());
        let text = drawn(&mut view, 120, 20, now);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert!(
            text.contains("a\\u{1b}]0;t\\u{7}\\n") && text.contains("stale for 0 s: \\u{1b}[2J"),
            "{text}"
        );
    }

    #[test]
    fn figures_that_grow_old_are_called_stale() {
        let now = Instant::now();
        let mut view = view(vec![limit("a", 1.0)], now);
        assert!(!drawn(&mut view, 100, 10, now + 2 * EVERY).contains("stale for"));
        assert!(drawn(&mut view, 100, 10, now + 2 * EVERY + 2 * SECOND).contains("stale for 8 s"));
    }

    #[test]
    fn of_many_limits_the_selected_one_is_in_view_on_any_screen() {
        use ratatui::crossterm::event::KeyCode;
        let now = Instant::now();
        let mut view =
            view((0..10_000).map(|number| limit(&format!("limit-{number:04}"), 1.0)).collect(), now);
        assert!(drawn(&mut view, 100, 12, now).contains("limit-0000"));
        view.press(KeyCode::End);
        let text = drawn(&mut view, 100, 12, now);
        assert!(text.contains("limit-9999") && text.contains("limit-9993"), "{text}");
        view.press(KeyCode::Up);
        assert!(drawn(&mut view, 100, 12, now).contains("limit-9999"));
        for (width, height) in [(1, 1), (20, 3), (300, 80)] {
            drawn(&mut view, width, height, now);
        }
    }
}
