//! A link between two nodes that a test can break in the ways in which networks break.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// How often a connection looks at what has become of its link.
const LOOK: Duration = Duration::from_millis(10);

/// What becomes of the bytes of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flow {
    /// They arrive.
    Passes,
    /// They are taken and never arrive, as on a half-open connection.
    Vanishes,
    /// Nobody takes them, as when the reader stands still.
    Waits,
}

impl Flow {
    fn of(word: u8) -> Self {
        [Flow::Passes, Flow::Vanishes, Flow::Waits][usize::from(word)]
    }
}

/// A link to a node: a proxy in between. Ends when dropped.
pub(crate) struct Link {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// From the child to the parent, and back.
    up: AtomicU8,
    down: AtomicU8,
    refuses: AtomicBool,
    ended: AtomicBool,
    /// Connections of an earlier age are cut.
    age: AtomicU64,
    delay_ms: AtomicU64,
    connections: AtomicUsize,
    accepted: AtomicUsize,
}

impl Link {
    /// A link to `target`, which is host and port.
    pub(crate) fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared::default());
        let (target, accepting) = (target.to_owned(), shared.clone());
        thread::spawn(move || accept(&listener, &target, &accepting));
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Breaks what is open, and refuses what comes.
    pub(crate) fn cut(&self) {
        self.shared.refuses.store(true, SeqCst);
        self.shared.age.fetch_add(1, SeqCst);
    }

    /// Bytes vanish both ways, and no connection ends.
    pub(crate) fn blackhole(&self) {
        self.flows(Flow::Vanishes, Flow::Vanishes);
    }

    /// What becomes of bytes from the child to the parent, and of those from the parent to the child.
    pub(crate) fn flows(&self, up: Flow, down: Flow) {
        self.shared.up.store(up as u8, SeqCst);
        self.shared.down.store(down as u8, SeqCst);
    }

    /// How long bytes take.
    pub(crate) fn delay(&self, delay: Duration) {
        self.shared.delay_ms.store(u64::try_from(delay.as_millis()).unwrap(), SeqCst);
    }

    /// All is well from now on. Connections whose bytes vanished have lost some, and end.
    pub(crate) fn heal(&self) {
        self.shared.refuses.store(false, SeqCst);
        self.delay(Duration::ZERO);
        let lossy = [&self.shared.up, &self.shared.down]
            .iter()
            .any(|flow| Flow::of(flow.load(SeqCst)) == Flow::Vanishes);
        if lossy {
            self.shared.age.fetch_add(1, SeqCst);
        }
        self.flows(Flow::Passes, Flow::Passes);
    }

    /// Connections open now.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        self.shared.age.fetch_add(1, SeqCst);
    }
}

fn accept(listener: &TcpListener, target: &str, shared: &Arc<Shared>) {
    while !shared.ended.load(SeqCst) {
        match listener.accept() {
            Ok((child, _)) if !shared.refuses.load(SeqCst) => {
                shared.accepted.fetch_add(1, SeqCst);
                join(child, target, shared);
            }
            Ok(_) => {}
            Err(_) => thread::sleep(LOOK),
        }
    }
}

/// Joins a connection to its target; without one the child is told so by the end of its own.
fn join(child: TcpStream, target: &str, shared: &Arc<Shared>) {
    let Ok(parent) = TcpStream::connect(target) else { return };
    let age = shared.age.load(SeqCst);
    shared.connections.fetch_add(1, SeqCst);
    let (child_too, parent_too) = (child.try_clone().unwrap(), parent.try_clone().unwrap());
    let (down, up) = (shared.clone(), shared.clone());
    thread::spawn(move || pump(parent_too, child_too, age, &down, |shared| &shared.down));
    thread::spawn(move || {
        pump(child, parent, age, &up, |shared| &shared.up);
        up.connections.fetch_sub(1, SeqCst);
    });
}

/// Carries bytes one way until either end closes, or the link is cut.
fn pump(mut from: TcpStream, mut to: TcpStream, age: u64, shared: &Shared, flow: fn(&Shared) -> &AtomicU8) {
    from.set_nonblocking(false).unwrap();
    from.set_read_timeout(Some(LOOK)).unwrap();
    to.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = [0; 16 * 1024];
    while shared.age.load(SeqCst) == age {
        let flow = Flow::of(flow(shared).load(SeqCst));
        if flow == Flow::Waits {
            thread::sleep(LOOK);
            continue;
        }
        match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => {
                thread::sleep(Duration::from_millis(shared.delay_ms.load(SeqCst)));
                if flow == Flow::Passes && to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
