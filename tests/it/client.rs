//! An HTTP client of the plainest kind: every byte that is sent is in the test, nothing is repeated or
//! repaired.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer that never comes fails a test after so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Status and error, for snapshots.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.status, self.body)
    }
}

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).expect("the service listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a patience is not zero");
        stream.set_nodelay(true).expect("a TCP stream");
        Connection { stream, read: vec![] }
    }

    /// Sends bytes as they are. A peer that has closed already is no failure: its answer tells.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next answer; none where the peer closes without one.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let head_end = loop {
            if let Some(at) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.read[..head_end].to_vec()).expect("our heads are ASCII");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let length: usize = length.expect("every answer of ours has a length");
        while self.read.len() < head_end + length {
            self.more()?;
        }
        let body = serde_json::from_slice(&self.read[head_end..head_end + length]).unwrap_or(Value::Null);
        self.read.drain(..head_end + length);
        Some(Answer { status, body })
    }

    fn more(&mut self) -> Option<()> {
        let mut chunk = [0_u8; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => None,
            Ok(n) => {
                self.read.extend_from_slice(&chunk[..n]);
                Some(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}

/// A request, rendered.
pub(crate) fn request(method: &str, path: &str, content_type: Option<&str>, body: &[u8]) -> Vec<u8> {
    let kind = content_type.map(|kind| format!("content-type: {kind}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{kind}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// One exchange on a connection of its own.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut connection = Connection::open(address);
    connection.send(request);
    connection.answer().expect("an answer")
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    exchange(address, &request("GET", path, None, b""))
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Answer {
    post_bytes(address, path, body.to_string().as_bytes())
}

pub(crate) fn post_bytes(address: SocketAddr, path: &str, body: &[u8]) -> Answer {
    exchange(address, &request("POST", path, Some("application/json"), body))
}

/// The path of an operation: its key, percent-encoded once more.
pub(crate) fn operation_path(key: &str) -> String {
    let encode = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => (*byte as char).to_string(),
        other => format!("%{other:02X}"),
    };
    format!("/operations/{}", key.as_bytes().iter().map(encode).collect::<String>())
}
