//! `headworks top`, in a real terminal, beside a real fleet.

use std::time::Duration;

use crate::LIMIT_400;
use crate::harness::{Figure, FleetPlan, Process, Terminal, eventually};

const PATIENCE: Duration = Duration::from_secs(15);
const PROGRAM: &str = env!("CARGO_BIN_EXE_headworks");

/// The figures of a limit's row: offered, admitted, dropped and ratio.
fn figures(screen: &str, limit: &str) -> Option<[f64; 4]> {
    let row = screen.lines().find(|line| line.split_whitespace().any(|word| word == limit))?;
    let after = row.split_whitespace().skip_while(|word| *word != limit).skip(1);
    let figures: Vec<f64> =
        after.take(4).filter_map(|word| word.trim_end_matches("/s").parse().ok()).collect();
    figures.try_into().ok()
}

#[track_caller]
fn shows(terminal: &Terminal, part: &str) {
    eventually(part, PATIENCE, || {
        let screen = terminal.screen();
        (!screen.contains(part)).then_some(screen)
    });
}

#[test]
fn a_terminal_shows_what_the_status_says() {
    let fleet =
        FleetPlan::new(&format!("{LIMIT_400}  - {{name: idle, rate: 7/minute, match: {{service: x}}}}\n"))
            .start();
    let mut loads = fleet.load(&[150.0; 4], Duration::from_secs(120));
    let terminal = Terminal::start(140, 24);
    terminal.runs(&format!("{PROGRAM} top --url {}; echo \"ended with $?\"", fleet.controller.url("admin")));
    shows(&terminal, "1 dropping");
    std::thread::sleep(Duration::from_secs(3));
    let (screen, status) = (terminal.screen(), fleet.controller.status());
    let shown = figures(&screen, "checkout").unwrap_or_else(|| panic!("{screen}"));
    let limit = status.limit("checkout").unwrap();
    for (shown, field) in shown.into_iter().zip(["offered", "admitted", "dropped", "ratio"]) {
        Figure::new(field, shown).is_about(limit[field].as_f64().unwrap(), 0.15);
    }
    for part in ["controller controller", "2 zones  4 agents", "400/second", "7/minute", "2 of 2 limits"] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    loads.interrupt();
    loads.finish();

    terminal.types("/IDL");
    shows(&terminal, "filter: IDL");
    terminal.press("Enter");
    shows(&terminal, "1 of 2 limits");
    assert_eq!(figures(&terminal.screen(), "checkout"), None, "{}", terminal.screen());
    assert!(terminal.is_taken_over());
    terminal.press("q");
    shows(&terminal, "ended with 0");
    assert!(!terminal.is_taken_over());
    gives_the_terminal_back_when_interrupted(&terminal, &fleet.controller.url("admin"));
}

/// By a signal that is no key.
#[track_caller]
fn gives_the_terminal_back_when_interrupted(terminal: &Terminal, admin: &str) {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let line = format!("echo $$ > {}; exec {PROGRAM} top --url {admin}", pid.display());
    terminal.runs(&format!("sh -c '{line}'; echo \"interrupted, $?\""));
    shows(terminal, "2 of 2 limits");
    let pid = std::fs::read_to_string(pid).unwrap();
    let sent = std::process::Command::new("kill").args(["-INT", pid.trim()]).status().unwrap();
    assert!(sent.success());
    shows(terminal, "interrupted, 0");
    assert!(!terminal.is_taken_over());
}

#[test]
fn a_node_that_is_away_is_told_and_its_figures_are_called_stale() {
    let mut fleet = FleetPlan::new(LIMIT_400).start();
    let terminal = Terminal::start(100, 20);
    terminal.runs(&format!("{PROGRAM} top --url {}; echo \"ended with $?\"", fleet.controller.url("admin")));
    shows(&terminal, "checkout");
    fleet.controller.kill();
    shows(&terminal, "stale for");
    assert!(terminal.screen().contains("checkout"));
    terminal.press("C-c");
    shows(&terminal, "ended with 0");

    terminal.runs(&format!(
        "clear; {PROGRAM} top --url {}; echo \"ended with $?\"",
        fleet.controller.url("admin")
    ));
    shows(&terminal, "ended with 1");
    let screen = terminal.screen().replace('\n', "");
    assert!(
        screen.contains("cannot ask") && screen.contains("is a node running with that --admin?"),
        "{screen}"
    );
    assert!(!terminal.is_taken_over());

    let piped = Process::run(["top"], PATIENCE);
    assert_eq!(piped.status.code(), Some(64), "{}", piped.stderr);
    assert!(piped.stderr.contains("headworks status"), "{}", piped.stderr);
}
