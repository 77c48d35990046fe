//! A real browser without a window, told by the DevTools protocol what to do, over two pipes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::wait::{eventually, within};

/// No answer of the browser takes this long, on a machine with too little of everything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser with one page; ended when dropped.
pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    heard: Arc<Mutex<Heard>>,
    sent: u64,
    session: Option<String>,
    _profile: TempDir,
}

/// What the browser said.
#[derive(Default)]
struct Heard {
    answers: HashMap<u64, Value>,
    events: Vec<Value>,
}

/// How large the page is, and whether it is asked to be dark.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
}

impl Browser {
    /// Starts it with an empty page of this look.
    #[track_caller]
    pub(crate) fn start(look: Look) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // It takes commands on descriptor 3 and answers on 4.
        let flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking \
                     --no-first-run --remote-debugging-pipe";
        let line = format!(
            "exec chromium {flags} --user-data-dir='{}' about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1",
            profile.path().display()
        );
        let found =
            Command::new("sh").args(["-c", "command -v chromium"]).stdout(Stdio::null()).status().unwrap();
        assert!(found.success(), "chromium is missing: install Debian's package chromium");
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", &line]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let heard = Arc::<Mutex<Heard>>::default();
        let hears = heard.clone();
        thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let message: Value = serde_json::from_slice(&message).unwrap();
                let mut heard = lock(&hears);
                match message["id"].as_u64() {
                    Some(id) => drop(heard.answers.insert(id, message)),
                    None => heard.events.push(message),
                }
            }
        });
        let mut browser = Self { child, commands, heard, sent: 0, session: None, _profile: profile };
        browser.attach(look);
        browser
    }

    #[track_caller]
    fn attach(&mut self, look: Look) {
        let target = self.tell("Target.createTarget", &json!({"url": "about:blank"}));
        let attached =
            self.tell("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.tell(&format!("{domain}.enable"), &json!({}));
        }
        self.looks(look);
    }

    /// Another size, and other colours.
    #[track_caller]
    pub(crate) fn looks(&mut self, look: Look) {
        let Look { width, height, dark } = look;
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.tell("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tell("Emulation.setEmulatedMedia", &features);
    }

    /// Goes to an address.
    #[track_caller]
    pub(crate) fn open(&mut self, url: &str) {
        self.tell("Page.navigate", &json!({ "url": url }));
    }

    /// What an expression of JavaScript gives in the page.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.tell("Runtime.evaluate", &asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer:#}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression gives true.
    #[track_caller]
    pub(crate) fn awaits(&mut self, expression: &str) {
        eventually(expression, PATIENCE, || {
            let asked = format!("Boolean({expression})");
            (self.eval(&asked) != true).then(|| self.text("body"))
        });
    }

    /// The text that the first element of a selector shows; empty if there is none.
    #[track_caller]
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({selector:?})?.innerText ?? ''"));
        found.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first element of a selector.
    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        self.awaits(&format!("document.querySelector({selector:?})"));
        self.eval(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Presses and releases a key by its name, such as `Enter`, `ArrowDown` or `/`.
    #[track_caller]
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { key };
        let down = if text.chars().count() == 1 {
            json!({"type": "keyDown", "key": key, "text": text})
        } else {
            json!({"type": "rawKeyDown", "key": key})
        };
        self.tell("Input.dispatchKeyEvent", &down);
        self.tell("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key}));
    }

    /// Types a text into what has the focus.
    #[track_caller]
    pub(crate) fn types(&mut self, text: &str) {
        self.tell("Input.insertText", &json!({ "text": text }));
    }

    /// Every address that the page has asked for.
    pub(crate) fn requests(&self) -> Vec<String> {
        let heard = lock(&self.heard);
        let requests = heard.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    /// What the page, or the browser about it, complained of; not what the browser would only recommend.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let heard = lock(&self.heard);
        let complaints = heard.events.iter().filter(|event| {
            matches!(
                event["method"].as_str(),
                Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded")
            )
        });
        let complaints = complaints.filter(|event| event["params"]["entry"]["level"] != "verbose");
        complaints.map(|event| event["params"].to_string()).collect()
    }

    #[track_caller]
    fn tell(&mut self, method: &str, parameters: &Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        let mut command = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap_or_else(|error| panic!("chromium is gone: {error}"));
        let answer = within(PATIENCE, || lock(&self.heard).answers.remove(&id));
        let answer = answer.unwrap_or_else(|| panic!("chromium does not answer {method}"));
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end when it does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
