//! As much HTTP as the demo needs: one request a connection, to our own server on loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::demo::value;

pub(crate) struct Client {
    address: String,
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let (status, body) = self.request("GET", path, "", &[])?;
        value(status, &body)
    }

    pub(crate) fn text(&self, path: &str) -> Result<String> {
        let (status, body) = self.request("GET", path, "", &[])?;
        ensure!(status == 200, "{path} answered {status}");
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let (status, body) = self.request("POST", path, "application/json", body.to_string().as_bytes())?;
        value(status, &body)
    }

    pub(crate) fn upload(&self, path: &str, body: &[u8]) -> Result<Value> {
        let (status, body) = self.request("POST", path, "application/octet-stream", body)?;
        value(status, &body)
    }

    pub(crate) fn until_it_answers(&self, path: &str, at_most: Duration) -> Result<()> {
        let start = Instant::now();
        while self.get(path).is_err() {
            ensure!(
                start.elapsed() < at_most,
                "the server at {} does not answer",
                self.address
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn request(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
        let mut stream =
            TcpStream::connect(&self.address).with_context(|| format!("{} does not listen", self.address))?;
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .context("an answer without a head")?;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head
            .split_whitespace()
            .nth(1)
            .and_then(|code| code.parse().ok())
            .context("an answer without a status")?;
        Ok((status, answer.split_off(end + 4)))
    }
}
