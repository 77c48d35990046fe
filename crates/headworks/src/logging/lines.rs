//! An event as a line.

use std::fmt;
use std::time::Instant;

use serde_json::{Map, Value as Json};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, format::Writer};
use tracing_subscriber::registry::LookupSpan;

use super::LogFormat;
use super::fields::Fields;
use super::repeats::Repeats;

/// Makes lines of events, unless they repeat too often.
pub(super) struct Lines {
    format: LogFormat,
    repeats: Repeats,
}

impl Lines {
    pub(super) fn new(format: LogFormat) -> Self {
        Self { format, repeats: Repeats::default() }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Some(left_out) = self.repeats.pass(event.metadata(), Instant::now()) else { return Ok(()) };
        let (level, fields) = (*event.metadata().level(), Fields::of(event));
        match self.format {
            LogFormat::Text => text(writer, level, &fields, left_out),
            LogFormat::Json => json(writer, level, fields, left_out),
        }
    }
}

fn text(mut writer: Writer<'_>, level: Level, fields: &Fields, left_out: u64) -> fmt::Result {
    let [dim, colour, plain] =
        if writer.has_ansi_escapes() { ["\x1b[2m", colour(level), "\x1b[0m"] } else { [""; 3] };
    writer.write_str(dim)?;
    SystemTime.format_time(&mut writer)?;
    write!(writer, "{plain} {colour}{level:>5}{plain} {fields}")?;
    if left_out > 0 {
        write!(writer, " left_out={left_out}")?;
    }
    writer.write_char('\n')
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

fn json(mut writer: Writer<'_>, level: Level, fields: Fields, left_out: u64) -> fmt::Result {
    let mut line = fields.into_json();
    if left_out > 0 {
        line.insert("left_out".to_owned(), left_out.into());
    }
    writeln!(writer, "{}", stamped(line, level))
}

/// An error without an event behind it, as a line of JSON.
pub(super) fn json_error(message: &str) -> Json {
    stamped(Fields::saying(message).into_json(), Level::ERROR)
}

/// With its level, and the time.
fn stamped(mut line: Map<String, Json>, level: Level) -> Json {
    let mut time = String::new();
    // A clock that cannot be written leaves the time empty, and the rest is told all the same.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    line.insert("time".to_owned(), time.into());
    line.insert("level".to_owned(), level.as_str().to_ascii_lowercase().into());
    Json::Object(line)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing::{error, info, subscriber::with_default, warn};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(format: LogFormat, tell: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .event_format(Lines::new(format))
            .finish();
        with_default(subscriber, tell);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    const HOSTILE: &str = "x\"} 1\nlevel=error \u{1b}]0;t\u{7}\r\n{\"level\":\"error\"}";

    fn tell_all() {
        info!(what = "tree", agents = 3_u64, part = 0.5, on = true, "listening");
        warn!(value = HOSTILE, "{HOSTILE}");
        error!(cause = %HOSTILE, debug = ?HOSTILE, "long {}", "x".repeat(2000));
    }

    #[test]
    fn text_says_the_message_and_then_the_fields() {
        let lines = lines(LogFormat::Text, tell_all);
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert!(
            lines[0].ends_with("  INFO listening what=\"tree\" agents=3 part=0.5 on=true"),
            "{}",
            lines[0]
        );
        assert!(lines[1].contains("  WARN x\"} 1\\nlevel=error \\u{1b}]0;t\\u{7}\\r\\n{"), "{}", lines[1]);
        assert!(lines[2].len() < 1800 && lines[2].contains("x… cause=x"), "{}", lines[2]);
    }

    #[test]
    fn json_is_one_object_a_line_with_values_that_are_as_legible() {
        let lines = lines(LogFormat::Json, tell_all);
        let events: Vec<Json> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.len(), 3);
        let first = &events[0];
        assert_eq!(
            (&first["level"], &first["message"], &first["what"]),
            (&"info".into(), &"listening".into(), &"tree".into())
        );
        assert_eq!((&first["agents"], &first["part"], &first["on"]), (&3.into(), &0.5.into(), &true.into()));
        assert!(first["time"].as_str().unwrap().ends_with('Z'));
        assert_eq!(events[1]["level"], "warn");
        for event in &events {
            let texts = event.as_object().unwrap().values().filter_map(Json::as_str);
            assert!(texts.flat_map(str::chars).all(|c| !c.is_control()), "{event}");
        }
    }

    #[test]
    fn what_repeats_is_left_out_and_other_events_are_not() {
        let lines = lines(LogFormat::Text, || {
            (0..500).for_each(|number| warn!(number, "again"));
            warn!("another");
        });
        assert_eq!(lines.len(), 102, "{:?}", lines.last());
        assert!(lines[101].ends_with("another"));
    }
}
