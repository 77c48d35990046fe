//! A parent as its driver sees it, in a process or in a simulator: messages and `now` in, plans out.

use crate::children::{Attachment, ChildId, Children, Received};
use crate::message::{Hello, Plan, Report};
use crate::units::Moment;

/// A node with children. It does nothing by itself: its driver brings messages and time, and fetches what is to be
/// sent when there is room to send it.
pub trait Node {
    /// A child says hello.
    fn attach(&mut self, hello: Hello, now: Moment) -> Attachment;
    /// A child reports.
    fn report(&mut self, child: ChildId, report: &Report, now: Moment) -> Received;
    /// A child is gone, on purpose or not.
    fn detach(&mut self, child: ChildId, now: Moment);
    /// An interval has passed, or several: missed ones are not made up for.
    fn tick(&mut self, now: Moment);
    /// The children attached.
    fn children(&self) -> &Children;
    /// Whether a child has something to hear besides the heartbeat.
    fn has_news_for(&self, child: ChildId) -> bool;
    /// Whether it has heard nothing for about an interval: a child that does thinks itself alone in the end.
    fn owes_heartbeat(&self, child: ChildId, now: Moment) -> bool {
        self.children().owes_heartbeat(child, now)
    }
    /// The next plan for a child, as of now; `None` while there is nothing to go by.
    fn plan_for(&mut self, child: ChildId, now: Moment) -> Option<Plan>;
}
