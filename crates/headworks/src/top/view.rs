//! What is shown: which limits, in which order, and which one is selected. Keys change it.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::KeyCode;
use ratatui::widgets::TableState;

use super::args::Column;
use super::draw::HEADS;
use super::history::History;
use crate::status::{LimitView, NodeStatus, State};

/// Rows that PgUp and PgDn go.
const LEAP: usize = 15;
/// Longest filter, in characters: no name is longer.
const LONGEST_FILTER: usize = 128;

/// See the module.
pub(super) struct View {
    pub(super) admin: String,
    pub(super) status: NodeStatus,
    /// When the node answered last.
    heard: Option<Instant>,
    /// Why it did not answer since.
    pub(super) lost: Option<String>,
    /// Figures older than this are called stale.
    pub(super) stale_after: Duration,
    pub(super) sort: Column,
    pub(super) reverse: bool,
    pub(super) filter: String,
    /// Whether keys go into the filter.
    pub(super) typing: bool,
    /// The limits shown, by their place in the status.
    pub(super) rows: Vec<usize>,
    pub(super) table: TableState,
    selected: Option<String>,
    pub(super) history: History,
}

impl View {
    /// A view of a node that is asked so often.
    pub(super) fn new(admin: &str, sort: Column, filter: String, every: Duration) -> Self {
        Self {
            admin: admin.to_owned(),
            status: NodeStatus::default(),
            heard: None,
            lost: None,
            // One look may come late, and the next one be under way.
            stale_after: 2 * every + Duration::from_secs(1),
            sort,
            reverse: false,
            filter,
            typing: false,
            rows: Vec::new(),
            table: TableState::default(),
            selected: None,
            history: History::default(),
        }
    }

    /// Takes in an answer.
    pub(super) fn take(&mut self, status: NodeStatus, now: Instant) {
        self.history.take(&status.limits);
        self.status = status;
        self.heard = Some(now);
        self.lost = None;
        self.arrange();
    }

    /// There was none.
    pub(super) fn lose(&mut self, why: String) {
        self.lost = Some(why);
    }

    /// Time since the last answer.
    pub(super) fn age(&self, now: Instant) -> Duration {
        self.heard.map_or(Duration::ZERO, |heard| now.saturating_duration_since(heard))
    }

    /// The limits shown, in order.
    pub(super) fn limits(&self) -> impl Iterator<Item = &LimitView> {
        self.rows.iter().filter_map(|row| self.status.limits.get(*row))
    }

    /// The limit that is selected.
    pub(super) fn selected(&self) -> Option<&LimitView> {
        self.table.selected().and_then(|at| self.rows.get(at)).and_then(|row| self.status.limits.get(*row))
    }

    pub(super) fn state_of(&self, limit: &LimitView) -> State {
        State::of(limit, &self.status)
    }

    /// What a key does; true if it ends the command.
    pub(super) fn press(&mut self, key: KeyCode) -> bool {
        if self.typing {
            self.type_in(key);
            return false;
        }
        match key {
            KeyCode::Char('q') => return true,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Left => self.sort_by(HEADS.len() - 1),
            KeyCode::Right => self.sort_by(1),
            KeyCode::Esc => self.filter.clear(),
            _ => self.go(key),
        }
        self.arrange();
        false
    }

    fn type_in(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) if self.filter.chars().count() < LONGEST_FILTER => self.filter.push(letter),
            _ => {}
        }
        self.arrange();
    }

    fn sort_by(&mut self, steps: usize) {
        let at = HEADS.iter().position(|(column, ..)| *column == self.sort).unwrap_or_default();
        self.sort = HEADS[(at + steps) % HEADS.len()].0;
        self.reverse = false;
    }

    fn go(&mut self, key: KeyCode) {
        let last = self.rows.len().saturating_sub(1);
        let at = self.table.selected().unwrap_or(0);
        let next = match key {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::PageUp => at.saturating_sub(LEAP),
            KeyCode::PageDown => at + LEAP,
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return,
        };
        let chosen = self.rows.get(next.min(last)).and_then(|row| self.status.limits.get(*row));
        self.selected = chosen.map(|limit| limit.name.clone());
    }

    /// Filters and sorts; what is selected stays so wherever it goes.
    fn arrange(&mut self) {
        let part = self.filter.to_lowercase();
        let limits = &self.status.limits;
        let mut rows: Vec<usize> = (0..limits.len())
            .filter(|row| part.is_empty() || limits[*row].name.to_lowercase().contains(&part))
            .collect();
        rows.sort_by(|a, b| self.compare(&limits[*a], &limits[*b]));
        if self.reverse {
            rows.reverse();
        }
        let chosen = |name: &String| rows.iter().position(|row| limits[*row].name == *name);
        let at = self.selected.as_ref().and_then(chosen).or((!rows.is_empty()).then_some(0));
        self.table.select(at);
        self.rows = rows;
    }

    /// What is highest comes first, names in their order.
    fn compare(&self, a: &LimitView, b: &LimitView) -> std::cmp::Ordering {
        let over = |limit: &LimitView| limit.dropped + limit.would_drop;
        let by = match self.sort {
            Column::State => self.state_of(a).cmp(&self.state_of(b)),
            Column::Name => std::cmp::Ordering::Equal,
            Column::Offered => b.offered.total_cmp(&a.offered),
            Column::Admitted => b.admitted.total_cmp(&a.admitted),
            Column::Dropped => over(b).total_cmp(&over(a)).then(b.offered.total_cmp(&a.offered)),
            Column::Ratio => b.ratio.total_cmp(&a.ratio),
            Column::Buckets => b.buckets.cmp(&a.buckets),
        };
        by.then_with(|| a.name.cmp(&b.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::fixture::limit;

    fn view() -> View {
        let mut view = View::new("http://here:1", Column::Dropped, String::new(), Duration::from_secs(1));
        let over = LimitView { dropped: 5.0, ratio: 0.5, ..limit("beta", 10.0) };
        let limits = vec![limit("alpha", 1.0), over, limit("gamma", 30.0)];
        view.take(NodeStatus { limits, ..NodeStatus::default() }, Instant::now());
        view
    }

    fn names(view: &View) -> Vec<&str> {
        view.limits().map(|limit| limit.name.as_str()).collect()
    }

    #[test]
    fn columns_sort_and_turn_around() {
        let mut view = view();
        assert_eq!(names(&view), ["beta", "gamma", "alpha"]);
        view.press(KeyCode::Left);
        assert_eq!((view.sort, names(&view)), (Column::Admitted, vec!["gamma", "beta", "alpha"]));
        view.press(KeyCode::Char('r'));
        assert_eq!(names(&view), ["alpha", "beta", "gamma"]);
    }

    #[test]
    fn a_filter_is_typed_and_keys_do_nothing_else_meanwhile() {
        let mut view = view();
        for key in ['/', 'M', 'q'] {
            assert!(!view.press(KeyCode::Char(key)));
        }
        assert!(names(&view).is_empty() && view.selected().is_none());
        view.press(KeyCode::Backspace);
        view.press(KeyCode::Enter);
        assert_eq!(names(&view), ["gamma"]);
        view.press(KeyCode::Esc);
        assert_eq!(names(&view).len(), 3);
        assert!(view.press(KeyCode::Char('q')));
    }

    #[test]
    fn what_is_selected_stays_so_when_rows_change_places() {
        let mut view = view();
        view.press(KeyCode::Down);
        assert_eq!(view.selected().unwrap().name, "gamma");
        view.press(KeyCode::Right);
        view.press(KeyCode::Char('r'));
        assert_eq!(view.selected().unwrap().name, "gamma");
        for _ in 0..10 {
            view.press(KeyCode::Down);
        }
        assert_eq!(view.table.selected(), Some(2));
        view.take(NodeStatus { limits: vec![limit("alpha", 1.0)], ..NodeStatus::default() }, Instant::now());
        assert_eq!(view.selected().unwrap().name, "alpha");
        view.take(NodeStatus::default(), Instant::now());
        assert!(view.selected().is_none() && !view.press(KeyCode::Down));
    }
}
