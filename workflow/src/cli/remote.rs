//! One exchange with a running service.

use super::CliError;
use crate::http::Io;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use serde_json::Value;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// From connecting to the end of the answer: an act may fetch a record from the destination meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of an answer: a thousand cases are shorter.
const LIMIT: usize = 8 * 1024 * 1024;

/// What is to be done when nobody knows whether an act was taken.
pub(super) const IN_DOUBT: &str = "\n  help: look whether it was taken before you decide again";

pub(super) struct Remote<'a> {
    address: &'a str,
    runtime: Runtime,
}

/// The path of an operation: its own percent signs are escaped once more.
pub(super) fn path(operation: &str) -> String {
    let key = percent_encoding::utf8_percent_encode(operation, percent_encoding::NON_ALPHANUMERIC);
    format!("/operations/{key}")
}

impl Remote<'_> {
    pub(super) fn at(address: &str) -> Result<Remote<'_>, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| CliError::Unreachable(e.to_string()))?;
        Ok(Remote { address, runtime })
    }

    pub(super) fn get(&self, path: &str) -> Result<(u16, Value), CliError> {
        self.exchange(Method::GET, path, Bytes::new())
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<(u16, Value), CliError> {
        self.exchange(Method::POST, path, Bytes::from(body.to_string()))
    }

    fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<(u16, Value), CliError> {
        let acts = method == Method::POST;
        let exchange = async {
            tokio::time::timeout(PATIENCE, self.send(method, path, body))
                .await
                .unwrap_or_else(|_| Err(format!("no answer within {}", humantime::format_duration(PATIENCE))))
        };
        self.runtime.block_on(exchange).map_err(|why| {
            let doubt = if acts { IN_DOUBT } else { "" };
            CliError::Unreachable(format!("the service at {}: {why}{doubt}", self.address))
        })
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<(u16, Value), String> {
        let stream = TcpStream::connect(self.address).await.map_err(|e| e.to_string())?;
        let (mut sender, connection) = http1::handshake(Io::new(stream)).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address)
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|e| e.to_string())?;
        let response = sender.send_request(request).await.map_err(|e| e.to_string())?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| e.to_string())?;
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > LIMIT {
                return Err(format!("the answer is longer than {LIMIT} bytes"));
            }
            bytes.extend_from_slice(data);
        }
        let value =
            serde_json::from_slice(&bytes).map_err(|_| "it does not answer like a workflow".to_owned())?;
        Ok((status, value))
    }
}
