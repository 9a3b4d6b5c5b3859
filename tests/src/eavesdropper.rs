//! A relay between browser and server that keeps every byte the browser sends.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Listens on a port of its own and passes everything on.
#[derive(Debug)]
pub struct Eavesdropper {
    /// `http://127.0.0.1:PORT`
    pub base: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Eavesdropper {
    /// In front of the server at `base`.
    pub fn before(base: &str) -> anyhow::Result<Self> {
        let upstream = base.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let own = format!("http://{}", listener.local_addr()?);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keeper = heard.clone();
        std::thread::spawn(move || {
            for browser in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&upstream) else {
                    continue;
                };
                let (Ok(browser_out), Ok(server_out)) = (browser.try_clone(), server.try_clone()) else {
                    continue;
                };
                let keeper = keeper.clone();
                std::thread::spawn(move || relay(browser, server, Some(&keeper)));
                std::thread::spawn(move || relay(server_out, browser_out, None));
            }
        });
        Ok(Self { base: own, heard })
    }

    /// Whether the browser sent these bytes, whichever request carried them.
    pub fn heard(&self, needle: &str) -> bool {
        let heard = self
            .heard
            .lock()
            .expect("no relay panics while it holds the lock");
        heard
            .windows(needle.len())
            .any(|window| window == needle.as_bytes())
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream, keeper: Option<&Mutex<Vec<u8>>>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        if let Some(keeper) = keeper {
            keeper
                .lock()
                .expect("no relay panics while it holds the lock")
                .extend_from_slice(&buffer[..count]);
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
