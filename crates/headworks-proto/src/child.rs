//! Messages of a child.

use headworks_core::message::{Hello, Report};

use crate::wire::child_message::Message;
use crate::{WireError, hello, report, wire};

/// What a child said.
#[derive(Clone, Debug, PartialEq)]
pub enum FromChild {
    /// It introduces itself.
    Hello(Hello),
    /// It reports; `refused` entries made no sense and are left out.
    Report {
        /// What it counted.
        report: Report,
        /// Entries left out.
        refused: u32,
    },
    /// It leaves on purpose.
    Goodbye,
}

/// The message of a hello.
pub fn hello_message(hello: &Hello) -> wire::ChildMessage {
    wire::ChildMessage { message: Some(Message::Hello(hello::encode(hello))) }
}

/// The message of a report.
pub fn report_message(report: &Report) -> wire::ChildMessage {
    wire::ChildMessage { message: Some(Message::Report(report::encode(report))) }
}

/// The message of a goodbye.
pub fn goodbye_message() -> wire::ChildMessage {
    wire::ChildMessage { message: Some(Message::Goodbye(wire::Goodbye {})) }
}

/// What a child's message says.
///
/// # Errors
/// If the message is of no known kind, lacks what it must have, or breaks a bound.
pub fn decode_child(message: wire::ChildMessage) -> Result<FromChild, WireError> {
    match message.message.ok_or(WireError::NoMessage)? {
        Message::Hello(hello) => hello::decode(hello).map(FromChild::Hello),
        Message::Report(report) => {
            report::decode(report).map(|(report, refused)| FromChild::Report { report, refused })
        }
        Message::Goodbye(wire::Goodbye {}) => Ok(FromChild::Goodbye),
    }
}
