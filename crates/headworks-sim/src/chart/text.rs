//! A run as text.
//!
//! A level lies in the row whose lower edge it is; so a limit's line stands on top of what is admitted up to it. Each
//! panel has one row more than its height, for what lies exactly at the end of its axis or above it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::axis::{self, Axis, floor};
use super::columns::Columns;
use super::{Chart, Rates};

/// Less cannot hold an axis; more is no terminal but a mistake in a caller's sum.
const WIDTHS: RangeInclusive<usize> = 20..=500;
const HEIGHTS: RangeInclusive<usize> = 8..=200;

/// The characters to the left of the panels, for a label and the axis.
const GUTTER: usize = 7;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const OFFERED: char = '·';
const LIMIT: char = '─';
const ABOVE: char = '↑';
const MARK: char = '┊';

pub(super) fn draw(chart: &Chart<'_>, width: usize, height: usize) -> String {
    let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
    let height = height.clamp(*HEIGHTS.start(), *HEIGHTS.end());
    let columns = Columns::of(chart, width - GUTTER);
    // An even number of rows has one for 50 %.
    let ratio_rows = height / 8 * 2;
    let rates = chart.rates(((height - ratio_rows) / 3).max(3));
    let marks = Marks::of(chart, width - GUTTER);

    let mut lines = wrap(chart.title, width, 0);
    lines.extend(key(chart, width));
    lines.extend(rates_panel(&columns, &rates, height - ratio_rows, &marks));
    if let Some(note) = rates.note().filter(|note| !fits(note, width - GUTTER)) {
        lines.extend(wrap(&format!("{ABOVE} {note}"), width, 2));
    }
    lines.push("dropped".to_owned());
    lines.extend(ratio_panel(&columns, ratio_rows, &marks));
    lines.extend(time_axis(chart, &marks, width - GUTTER));
    lines.extend(marks.legend(chart, width));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// What the characters mean.
fn key(chart: &Chart<'_>, width: usize) -> Vec<String> {
    let limit = if chart.limit.is_empty() { String::new() } else { format!("   {LIMIT} limit") };
    wrap(&format!("units/s:   █ admitted   {OFFERED} offered beyond that{limit}"), width, 0)
}

fn rates_panel(columns: &Columns, rates: &Rates, rows: usize, marks: &Marks) -> Vec<String> {
    let mut panel = Panel::new(columns.offered.len(), rows, rates.axis);
    marks.cross(&mut panel);
    panel.fill(&columns.admitted);
    panel.draw_limit(columns);
    panel.draw_offered(columns);
    panel.draw_above(columns, rates);
    panel.lines(axis::rate)
}

fn ratio_panel(columns: &Columns, rows: usize, marks: &Marks) -> Vec<String> {
    let mut panel = Panel::new(columns.ratio.len(), rows, Axis { top: 1.0, tick: 0.5 });
    marks.cross(&mut panel);
    panel.fill(&columns.ratio);
    panel.lines(axis::percent)
}

/// The rows of a panel, lowest first.
struct Panel {
    rows: Vec<Vec<char>>,
    axis: Axis,
}

impl Panel {
    fn new(columns: usize, rows: usize, axis: Axis) -> Self {
        Self { rows: vec![vec![' '; columns]; rows + 1], axis }
    }

    fn height(&self) -> usize {
        self.rows.len() - 1
    }

    /// The row of a level.
    fn row(&self, figure: f64) -> usize {
        // The small part more keeps a level that is exactly at an edge from landing below it.
        floor(self.axis.share(figure) * self.height() as f64 + 1e-6)
    }

    /// How much a bar fills, in eighths of a row; what is not nothing is seen.
    fn eighths(&self, figure: f64) -> usize {
        let exact = self.axis.share(figure) * self.height() as f64 * 8.0;
        floor(exact.round()).max(usize::from(exact > 0.0))
    }

    fn fill(&mut self, figures: &[Option<f64>]) {
        for (column, figure) in figures.iter().enumerate() {
            let mut left = figure.map_or(0, |figure| self.eighths(figure));
            for row in &mut self.rows {
                if left == 0 {
                    break;
                }
                row[column] = BLOCKS[left.min(8)];
                left = left.saturating_sub(8);
            }
        }
    }

    /// The line gives way only where admitted ends in its row and above it: then the excess is the news.
    fn draw_limit(&mut self, columns: &Columns) {
        for (column, (limit, admitted)) in columns.limit.iter().zip(&columns.admitted).enumerate() {
            let Some(limit) = limit.filter(|limit| limit.is_finite()) else { continue };
            let row = self.row(limit);
            let fill = admitted.map_or(0, |admitted| self.eighths(admitted));
            let ends_in_row = fill > self.eighths(limit) && fill < (row + 1) * 8;
            if !ends_in_row {
                self.rows[row][column] = LIMIT;
            }
        }
    }

    /// Dots where offered is more than admitted, and up or down to there from the column before.
    fn draw_offered(&mut self, columns: &Columns) {
        let mut before = None;
        for (column, (offered, admitted)) in columns.offered.iter().zip(&columns.admitted).enumerate() {
            let row = offered.map(|offered| self.row(offered));
            if let Some(row) = row.filter(|_| *offered > *admitted) {
                let from = before.unwrap_or(row);
                let way = if from < row { from + 1..=row } else { row..=from.max(row + 1) - 1 };
                for row in way {
                    self.dot(row, column);
                }
            }
            before = row;
        }
    }

    /// Bars stay whole; a limit's line takes turns with the dots, so that neither hides the other.
    fn dot(&mut self, row: usize, column: usize) {
        let cell = &mut self.rows[row][column];
        let turn = column.is_multiple_of(2);
        if matches!(*cell, ' ' | MARK) || (*cell == LIMIT && turn) {
            *cell = OFFERED;
        }
    }

    /// Arrows where offered is above the axis, and how far it went.
    fn draw_above(&mut self, columns: &Columns, rates: &Rates) {
        let top = self.height();
        let above: Vec<bool> =
            columns.offered_peak.iter().map(|peak| peak.is_some_and(|peak| peak > rates.axis.top)).collect();
        for (cell, _) in self.rows[top].iter_mut().zip(&above).filter(|(_, above)| **above) {
            *cell = ABOVE;
        }
        let note = rates.note().filter(|note| fits(note, above.len()));
        if let (Some(note), Some(first)) = (note, above.iter().position(|above| *above)) {
            // Beside the arrows if there is room, otherwise among them.
            let beside = first + above[first..].iter().take_while(|above| **above).count();
            let size = length(&note) + 2;
            let at = if beside + size <= above.len() { beside } else { (first + 1).min(above.len() - size) };
            overwrite(&mut self.rows[top], at, &format!(" {note} "));
        }
    }

    /// The rows from above, with the axis at their left.
    fn lines(&self, label: fn(f64) -> String) -> Vec<String> {
        let mut labels = vec![None; self.rows.len()];
        for tick in self.axis.ticks() {
            labels[self.row(tick)].get_or_insert_with(|| label(tick));
        }
        let line = |(row, label): (&Vec<char>, Option<String>)| {
            let edge = if label.is_some() { '┤' } else { '│' };
            format!("{:>6}{edge}{}", label.unwrap_or_default(), row.iter().collect::<String>())
        };
        self.rows.iter().zip(labels).rev().map(line).collect()
    }
}

/// Whether a note has room in a row of this many columns, with a blank and an arrow at its sides.
fn fits(note: &str, columns: usize) -> bool {
    length(note) + 3 <= columns
}

fn overwrite(row: &mut [char], at: usize, text: &str) {
    for (cell, char) in row.iter_mut().skip(at).zip(text.chars()) {
        *cell = char;
    }
}

/// The axis with its ticks and the letters of the marks, and the times under it.
fn time_axis(chart: &Chart<'_>, marks: &Marks, columns: usize) -> [String; 2] {
    let axis = Axis::ending_at(chart.seconds(), (columns / 10).max(1));
    let mut line = vec!['─'; columns];
    // A label reaches half its length into the gutter.
    let mut labels = vec![' '; GUTTER + columns];
    for tick in axis.ticks() {
        let column = column(axis.share(tick), columns);
        let label = axis::seconds(tick);
        let size = length(&label);
        let at = (GUTTER + column).saturating_sub(size / 2).min(labels.len().saturating_sub(size));
        let before = at.saturating_sub(1);
        if labels[before..].iter().take(size + 2).all(|cell| *cell == ' ') {
            line[column] = '┬';
            overwrite(&mut labels, at, &label);
        }
    }
    for (column, letter) in marks.placed() {
        line[column] = letter;
    }
    let line: String = line.into_iter().collect();
    [format!("{:>GUTTER$}{line}", "└"), labels.into_iter().collect()]
}

fn column(share: f64, columns: usize) -> usize {
    floor(share * columns as f64).min(columns - 1)
}

/// The marks' letters, and where on the time axis they stand.
struct Marks(Vec<(char, Option<usize>)>);

impl Marks {
    /// Each mark at its time, or in the next free column; one after the end of the run has no place.
    fn of(chart: &Chart<'_>, columns: usize) -> Self {
        let mut taken = vec![false; columns];
        let mut marks = Vec::new();
        for (n, (at, _)) in chart.marks.iter().enumerate() {
            let share = at.as_secs_f64() / chart.seconds();
            let first = if share <= 1.0 { column(share, columns) } else { columns };
            let place = (first..columns).find(|column| !taken[*column]);
            if let Some(column) = place {
                taken[column] = true;
            }
            marks.push((LETTERS.get(n).map_or('*', |letter| char::from(*letter)), place));
        }
        Self(marks)
    }

    fn placed(&self) -> impl Iterator<Item = (usize, char)> {
        self.0.iter().filter_map(|(letter, place)| place.map(|column| (column, *letter)))
    }

    /// Faint lines through a panel; whatever is drawn later covers them.
    fn cross(&self, panel: &mut Panel) {
        for (column, _) in self.placed() {
            for row in &mut panel.rows {
                row[column] = MARK;
            }
        }
    }

    /// What each letter stands for.
    fn legend(&self, chart: &Chart<'_>, width: usize) -> Vec<String> {
        let entry = |((letter, _), (at, what)): (&(char, Option<usize>), &(Duration, String))| {
            wrap(&format!("{letter}  {}  {what}", axis::seconds(at.as_secs_f64())), width, 3)
        };
        self.0.iter().zip(chart.marks).flat_map(entry).collect()
    }
}

/// Text in lines of at most `width` characters, all but the first indented. Control characters become blanks, so that
/// a name cannot move the cursor; a word too long for a line is broken.
fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let clean: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    if length(&clean) <= width {
        return vec![clean];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in clean.split_whitespace() {
        for piece in word.chars().collect::<Vec<_>>().chunks(width - indent) {
            let piece: String = piece.iter().collect();
            match lines.last_mut() {
                None => lines.push(piece),
                Some(line) if length(line) + 1 + length(&piece) <= width => *line = format!("{line} {piece}"),
                Some(_) => lines.push(format!("{:indent$}{piece}", "")),
            }
        }
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}
