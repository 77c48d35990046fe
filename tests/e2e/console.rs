//! The console, in a real browser, beside a real fleet.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::harness::{
    Browser, Figure, Fleet, FleetPlan, LimitsFile, Load, Loads, Look, Node, eventually, get,
};

const WIDE: Look = Look { width: 1280, height: 800, dark: false };
const NARROW_AND_DARK: Look = Look { width: 390, height: 844, dark: true };
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// A value of a bucket, as whoever asks an agent may choose it.
const HOSTILE: &str = "<img src=x onerror=alert(1)>";
const LIMITS: &str = "
limits:
  - {name: checkout, match: {service: checkout}, rate: 400/second}
  - {name: watched, match: {service: checkout}, per: [caller], rate: 200/second, mode: shadow}
";

/// Without whatever the browser asks for by itself, all that the page asked for is on the controller.
#[track_caller]
fn asked_nobody_else(browser: &Browser, node: &Node) {
    let (here, requests) = (format!("{}/", node.url("admin")), browser.requests());
    assert!(requests.len() > 5, "{requests:?}");
    for request in requests.iter().filter(|request| !request.starts_with("about:")) {
        assert!(request.starts_with(&here), "{request}");
    }
}

#[track_caller]
fn is_content(browser: &Browser) {
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Traffic until it is interrupted.
fn surge(fleet: &Fleet, rate: f64) -> Loads {
    let load = |agent: &Node| Load::new(&agent.url("http"), rate).with(&format!("caller={HOSTILE}"));
    Loads::start(&fleet.agents.iter().map(load).collect::<Vec<_>>(), Duration::from_secs(120))
}

#[test]
fn a_surge_is_seen_as_it_happens() {
    let fleet = FleetPlan::new(LIMITS).start();
    let console = fleet.controller.url("admin");
    let mut browser = Browser::start(WIDE);
    browser.open(&console);
    browser.awaits("document.querySelector('tr[data-limit=checkout] .state')?.innerText === 'idle'");
    let mut loads = surge(&fleet, 400.0);
    let state = "document.querySelector('tr[data-limit=checkout] .state')?.innerText";
    eventually("the controller sees the surge", Duration::from_secs(30), || {
        let offered = fleet.controller.status().limit("checkout").and_then(|limit| limit["offered"].as_f64());
        offered.is_none_or(|offered| offered < 800.0).then(|| format!("{offered:?}"))
    });
    let seen = Instant::now();
    browser.awaits(&format!("{state} === 'dropping'"));
    println!("the console shows it {} ms after /status", seen.elapsed().as_millis());
    browser.awaits("document.querySelector('tr[data-limit=watched] .state')?.innerText === 'would drop'");
    assert!(browser.text("#summary").contains("dropping"), "{}", browser.text("#summary"));

    let picture = "document.querySelector('tr[data-limit=checkout] canvas').toDataURL()";
    let before = browser.eval(picture);
    browser.awaits(&format!("{picture} !== {before}"));

    browser.click("tr[data-limit=watched] a");
    browser.awaits("document.querySelector('h1')?.innerText === 'watched'");
    browser.awaits(
        "[...document.querySelectorAll('.card')].some((card) => card.innerText.includes('By bucket value'))",
    );
    browser.awaits(&format!(
        "[...document.querySelectorAll('td.name')].some((cell) => cell.innerText === {HOSTILE:?})"
    ));
    assert_eq!(browser.eval("document.querySelectorAll('main img').length"), 0);
    browser.awaits("[...document.querySelectorAll('.state.fresh')].length === 2");
    loads.interrupt();
    loads.finish();
    reads_what_metrics_do(&mut browser, &fleet);
    asked_nobody_else(&browser, &fleet.controller);
    is_content(&browser);
}

/// A trial on the page, after the load: the page reads it anew every ten seconds.
#[track_caller]
fn reads_what_metrics_do(browser: &mut Browser, fleet: &Fleet) {
    std::thread::sleep(Duration::from_secs(2));
    browser.eval("location.reload()");
    browser.awaits("document.querySelector('[data-part-over]')");
    let counted = |metric: &str| fleet.controller.scrape().of_limit(metric, "watched");
    let (over, offered) = (counted("headworks_would_drop_total"), counted("headworks_offered_total"));
    let part = browser.eval("document.querySelector('[data-part-over]').dataset.partOver");
    let part = part.as_str().unwrap().parse().unwrap();
    Figure::new("part over", part).is_about(over / offered, 0.002);
    let card = browser.text("[data-trial]").replace(['\u{202f}', ','], "");
    let told = format!("{over:.0} of {offered:.0} units");
    assert!(card.contains("Would have been dropped") && card.contains(&told), "{told}: {card}");
}

/// A controller of ten thousand limits that nobody uses, and a token.
fn of_ten_thousand(token: &std::path::Path) -> (Node, LimitsFile) {
    let mut text = "limits:\n".to_owned();
    for number in 0..10_000 {
        let _ =
            writeln!(text, "  - {{name: limit-{number}, match: {{service: s{number}}}, rate: 400/second}}");
    }
    let limits = LimitsFile::new(&text);
    let paths = [limits.path(), token.to_owned()].map(|path| path.display().to_string());
    let args = ["--limits", &paths[0], "--admin-token-file", &paths[1]].map(str::to_owned);
    (Node::start("controller", "c", &args), limits)
}

#[test]
fn one_limit_of_ten_thousand_is_found_with_the_keyboard_and_the_token_changes_things() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    let (node, limits) = of_ten_thousand(&token);
    let mut browser = Browser::start(NARROW_AND_DARK);
    browser.open(&node.url("admin"));
    browser.awaits("document.querySelectorAll('tr.open').length === 25");
    assert!(
        browser.text("#view").replace('\u{202f}', "").contains("10000 limits"),
        "{}",
        browser.text("#view")
    );
    fits_its_width(&mut browser);
    let bytes =
        browser.eval("performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0)");
    assert!(bytes.as_u64().is_some_and(|bytes| (10_000..1_000_000).contains(&bytes)), "{bytes}");

    goes_where_hands_send_it(&mut browser);
    browser.press("/");
    browser.types("LIMIT-7777");
    browser.awaits("document.querySelectorAll('tr.open').length === 1");
    browser.press("ArrowDown");
    browser.press("Enter");
    browser.awaits("document.querySelector('h1')?.innerText === 'limit-7777'");
    fits_its_width(&mut browser);
    throws_the_switch(&mut browser, &node);
    shows_what_was_refused(&mut browser, &limits);
    asked_nobody_else(&browser, &node);
    is_content(&browser);
}

/// Addresses that nobody made by a click, and the way past the bar.
#[track_caller]
fn goes_where_hands_send_it(browser: &mut Browser) {
    for (hash, title) in [("#/limit/%E0", "%E0"), ("#/constructor?page=x&sort=colour", "Limits")] {
        browser.eval(&format!("location.hash = {hash:?}"));
        browser.awaits(&format!("document.querySelector('h1')?.innerText === {title:?}"));
        browser.awaits("document.activeElement === document.querySelector('h1')");
    }
    browser.awaits("document.querySelectorAll('tr.open').length === 25");
    browser.eval("document.querySelector('.skip').click()");
    browser.awaits("document.activeElement.id === 'view' && location.hash.startsWith('#/constructor')");
}

#[track_caller]
fn fits_its_width(browser: &mut Browser) {
    let beyond = browser.eval("document.documentElement.scrollWidth - innerWidth");
    assert!(beyond.as_i64().is_some_and(|beyond| beyond <= 0), "{beyond}");
    let dark = browser.eval("getComputedStyle(document.body).backgroundColor");
    assert_eq!(dark, "rgb(20, 23, 26)");
}

#[track_caller]
fn throws_the_switch(browser: &mut Browser, node: &Node) {
    browser.click("#token");
    browser.awaits("document.activeElement.closest('dialog')");
    browser.eval("document.querySelector('dialog input').focus()");
    browser.types(TOKEN);
    browser.press("Enter");
    browser.awaits("document.querySelector('#token').innerText === 'Token given'");
    browser.eval("location.hash = '#/fleet'");
    browser.awaits("[...document.querySelectorAll('.card button')].some((button) => button.innerText.startsWith('Turn every'))");
    browser.eval("[...document.querySelectorAll('.card button')].find((button) => button.innerText.startsWith('Turn every')).click()");
    browser.click("dialog .firm");
    browser.awaits("document.querySelector('#notices').innerText.includes('Shadow-all is on')");
    assert_eq!(node.get("admin", "/shadow-all").unwrap().json()["on"], true);
}

#[track_caller]
fn shows_what_was_refused(browser: &mut Browser, limits: &LimitsFile) {
    limits.write("limits:\n  - name: a\n    rate: 5/fortnight\n");
    browser.click("#notices a[href='#/file']");
    browser.awaits("document.querySelector('.faulty')?.innerText.includes('5/fortnight')");
    let text = browser.text("#view");
    for part in ["limits.yaml:3:", "limits[0].rate", "generation 1", "name: limit-0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    limits.write("limits:\n  - name: a\n    rate: 5/minute\n");
    browser.awaits("document.querySelector('#view').innerText.includes('generation 2, 1 limit,')");
    browser.awaits("document.querySelector('#view').innerText.includes('a good file has come since')");
}

/// A stream of events, after its first one.
fn viewer(node: &Node) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(node.address("admin")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET /console/events?view=limits HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut bytes = [0; 4096];
    let read = stream.read(&mut bytes).unwrap();
    (String::from_utf8_lossy(&bytes[..read]).into_owned(), stream)
}

#[test]
fn viewers_are_bounded_and_end_with_their_controller() {
    let limits = LimitsFile::new(LIMITS);
    let args = ["--limits".to_owned(), limits.path().display().to_string()];
    let mut node = Node::start("controller", "c", &args);
    let page = node.get("admin", "/console/").unwrap();
    for header in [
        "content-security-policy: default-src 'self';",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    let mut viewers: Vec<(String, TcpStream)> = (0..64).map(|_| viewer(&node)).collect();
    assert!(viewers.iter().all(|(head, _)| head.starts_with("HTTP/1.1 200")), "{viewers:?}");
    let refused = get(node.address("admin"), "/console/events").unwrap();
    assert!(refused.status == 503 && refused.body.contains("64 viewers"), "{refused:?}");
    viewers.truncate(60);
    eventually("places are free again", Duration::from_secs(10), || {
        let (head, _) = viewer(&node);
        (!head.starts_with("HTTP/1.1 200")).then_some(head)
    });
    let long = format!("/console/events?search={}", "x".repeat(300));
    for nonsense in ["/console/events?view=everything", &long, "/console/file/running?from=-1"] {
        assert_eq!(get(node.address("admin"), nonsense).unwrap().status, 400, "{nonsense}");
    }
    node.process.signal("TERM");
    let mut rest = Vec::new();
    viewers[0].1.read_to_end(&mut rest).unwrap();
    assert!(node.process.wait(Duration::from_secs(10)).success());
    assert_eq!(node.says("grace period is over"), 0);
}
