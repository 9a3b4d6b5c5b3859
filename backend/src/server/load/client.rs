//! An HTTP/1.1 client with just what measuring needs: one connection, one request at a time.

use std::fmt::Write as _;
use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A kept-alive connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    body: Vec<u8>,
}

impl Reply {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("{}: {}", self.status, self.text()))
    }
}

impl Connection {
    pub(super) async fn open(addr: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            host: addr.to_string(),
        })
    }

    pub(super) async fn get(&mut self, path: &str) -> anyhow::Result<Reply> {
        self.exchange("GET", path, "", &[]).await
    }

    pub(super) async fn delete(&mut self, path: &str) -> anyhow::Result<Reply> {
        self.exchange("DELETE", path, "", &[]).await
    }

    pub(super) async fn post(&mut self, path: &str, json: &str) -> anyhow::Result<Reply> {
        self.exchange("POST", path, "application/json", json.as_bytes())
            .await
    }

    pub(super) async fn upload(&mut self, path: &str, content: Vec<u8>) -> anyhow::Result<Reply> {
        self.exchange("POST", path, "application/octet-stream", &content)
            .await
    }

    async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        media: &str,
        body: &[u8],
    ) -> anyhow::Result<Reply> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        if !media.is_empty() {
            let _ = write!(
                head,
                "Content-Type: {media}\r\nContent-Length: {}\r\n",
                body.len()
            );
        }
        head += "\r\n";
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        self.stream.get_mut().write_all(&message).await?;

        let status: u16 = self
            .line()
            .await?
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .context("no status line")?;
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size = usize::from_str_radix(self.line().await?.trim(), 16)?;
                let from = body.len();
                body.resize(from + size, 0);
                self.stream.read_exact(&mut body[from..]).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(length, 0);
            self.stream.read_exact(&mut body).await?;
        }
        Ok(Reply { status, body })
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        anyhow::ensure!(
            self.stream.read_line(&mut line).await? > 0,
            "the connection was closed"
        );
        Ok(line.trim_end().to_owned())
    }
}
