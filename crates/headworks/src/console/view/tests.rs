use serde_json::Value;

use super::super::board::Board;
use super::super::refused::RefusalSummary;
use super::super::sample::{Demand, OfBucket, Watched};
use super::fixture::{limit, sample};
use super::*;
use crate::status::{Child, LimitView, Zone};

fn asked(query: &str) -> Asked {
    let uri = format!("/?{query}").parse().unwrap();
    axum::extract::Query::<Asked>::try_from_uri(&uri).unwrap().0
}

fn told(board: &mut Board, query: &str) -> Value {
    let event = board.render(&asked(query)).unwrap();
    let text = str::from_utf8(&event).unwrap().strip_prefix("data: ").unwrap();
    assert!(!text.trim_end().contains('\n'), "an event is one line");
    serde_json::from_str(text).unwrap()
}

fn names(told: &Value) -> Vec<&str> {
    told["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

fn board(limits: Vec<LimitView>) -> Board {
    let mut board = Board::default();
    board.take(sample(limits), RefusalSummary::default(), 1.0);
    board
}

fn over(name: &str, offered: f64, ratio: f64) -> LimitView {
    LimitView { ratio, dropped: offered * ratio, admitted: offered * (1.0 - ratio), ..limit(name, offered) }
}

#[test]
fn a_question_that_makes_no_sense_is_refused() {
    for query in ["view=everything", "sort=colour", "page=-1", "serach=x"] {
        let uri = format!("/?{query}").parse().unwrap();
        assert!(axum::extract::Query::<Asked>::try_from_uri(&uri).is_err(), "{query}");
    }
    assert!(asked(&format!("search={}", "x".repeat(300))).check().is_err());
    assert_eq!(asked("view=limits&search=a%26b&sort=name&reverse=true&page=3").check(), Ok(()));
}

#[test]
fn what_is_over_its_limit_comes_first_and_is_counted() {
    let mut board =
        board(vec![limit("a", 900.0), over("b", 600.0, 0.3), over("c", 500.0, 0.5), limit("d", 0.0)]);
    let first = told(&mut board, "");
    assert_eq!(names(&first), ["c", "b", "a", "d"]);
    assert_eq!(first["head"]["states"], serde_json::json!({"dropping": 2, "within": 1, "idle": 1}));
    assert_eq!(names(&told(&mut board, "sort=offered")), ["a", "b", "c", "d"]);
    assert_eq!(names(&told(&mut board, "sort=name&reverse=true")), ["d", "c", "b", "a"]);
    assert_eq!(names(&told(&mut board, "sort=pipeline")), ["a", "b", "c", "d"]);
    assert_eq!(first["rows"][0]["line"], 400.0);
    assert_eq!(first["rows"][0]["curves"]["offered"], serde_json::json!([500.0]));
}

#[test]
fn one_limit_of_ten_thousand_is_found() {
    let mut board = board((0..10_000).map(|number| limit(&format!("Limit-{number}"), 0.0)).collect());
    let all = told(&mut board, "");
    assert_eq!(
        (names(&all).len(), all["found"].as_u64(), all["pages"].as_u64()),
        (25, Some(10_000), Some(400))
    );
    assert_eq!(names(&told(&mut board, "search=limit-7777")), ["Limit-7777"]);
    let none = told(&mut board, "search=nothing-like-it&page=7");
    assert_eq!((names(&none).len(), none["page"].as_u64(), none["pages"].as_u64()), (0, Some(0), Some(1)));
    assert_eq!(told(&mut board, "page=100000")["page"], 399);
    let event = board.render(&asked("")).unwrap();
    assert!(event.len() < 40_000, "{}", event.len());
}

#[test]
fn an_event_of_a_busy_minute_stays_small() {
    let mut board = Board::default();
    for second in 0..100 {
        let limits =
            (0..50).map(|number| over(&format!("limit-{number}"), 123_456.7 + f64::from(second), 0.123_456));
        board.take(sample(limits.collect()), RefusalSummary::default(), f64::from(second));
    }
    let event = board.render(&asked("")).unwrap();
    assert!(event.len() < 64_000, "{}", event.len());
}

#[test]
fn a_limits_page_tells_zones_and_buckets_of_those_that_are_looked_at() {
    let mut known = sample(vec![limit("a", 30.0)]);
    known.status.zones = vec![Zone { zone: "east".to_owned(), aggregators: 1, agents: 2 }];
    let bucket = |value: &str| OfBucket {
        scope: Vec::new(),
        values: Some(vec![value.to_owned()]),
        offered: 10.0,
        ratio: 0.0,
        tokens: None,
        rate: "400/second".to_owned(),
    };
    let demand = Demand { offered: 30.0, dropped: 0.0, would_drop: 0.0 };
    let watched = Watched {
        zones: [("east".to_owned(), demand)].into(),
        buckets: vec![bucket("Web"), bucket("batch")],
        known: 2,
    };
    known.watched.insert("a".to_owned(), watched);
    let mut board = Board::default();
    board.take(known, RefusalSummary::default(), 1.0);
    let page = told(&mut board, "view=limit&limit=a&search=web");
    assert_eq!(
        (page["buckets"]["found"].as_u64(), &page["buckets"]["rows"][0]["values"][0]),
        (Some(1), &"Web".into())
    );
    assert_eq!((&page["zones"][0]["offered"], &page["zones"][0]["state"]), (&30.0.into(), &"fresh".into()));
    let gone = told(&mut board, "view=limit&limit=gone");
    assert!(gone["row"].is_null() && gone["buckets"].is_null(), "{gone:#}");
}

#[test]
fn children_are_paged_and_a_silent_zone_is_called_stale() {
    let child = |number: u32, silent| Child {
        node: format!("aggregator-{number}"),
        tier: "aggregator".to_owned(),
        zone: if silent { "west" } else { "east" }.to_owned(),
        agents: 1,
        report_age_ms: 100,
        silent,
        buckets: 1,
    };
    let mut known = sample(Vec::new());
    known.status.children = (0..60).map(|number| child(number, false)).chain([child(60, true)]).collect();
    known.status.zones =
        ["east", "west"].map(|zone| Zone { zone: zone.to_owned(), aggregators: 1, agents: 1 }).into();
    let mut board = Board::default();
    board.take(known, RefusalSummary::default(), 1.0);
    let fleet = told(&mut board, "view=fleet&page=2");
    assert_eq!((fleet["children"].as_array().unwrap().len(), fleet["pages"].as_u64()), (11, Some(3)));
    assert_eq!(fleet["zones"][1]["state"], "stale");
    assert_eq!(told(&mut board, "view=fleet&search=aggregator-60")["found"], 1);
    assert_eq!(fleet["head"]["silent"], 1);
}
