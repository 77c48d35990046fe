//! What is told of figures that were measured several times, and tables of them.

use std::io::{self, Write};

/// The median of some figures, and their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// Half of them are below.
    pub(crate) median: f64,
    /// The least.
    pub(crate) least: f64,
    /// The greatest.
    pub(crate) greatest: f64,
}

impl Summary {
    /// The summary of these figures; of none it is not a number.
    pub(crate) fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self { median: (at(last / 2) + at(last.div_ceil(2))) / 2.0, least: at(0), greatest: at(last) }
    }
}

/// Writes rows in columns: the first to the left, the others to the right.
pub(crate) fn table<const N: usize>(out: &mut impl Write, rows: &[[String; N]]) -> io::Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            match column {
                0 => write!(out, "{cell:<width$}")?,
                _ => write!(out, "  {cell:>width$}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(summary, Summary { median: 2.5, least: 1.0, greatest: 4.0 });
        assert_eq!(Summary::of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert!(Summary::of(&[]).median.is_nan());
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut out = Vec::new();
        let rows = [["a", "1.5"], ["bcd", "10.5"]].map(|row| row.map(str::to_owned));
        table(&mut out, &rows).expect("a Vec takes all");
        assert_eq!(String::from_utf8_lossy(&out), "a     1.5\nbcd  10.5\n");
    }
}
