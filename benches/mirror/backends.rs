//! Backends that do the same for each request: an nginx that answers with an empty 200 at once.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rig::Setup;
use tempfile::TempDir;

use crate::OTHER_CORE;

pub struct Backends {
    nginx: Child,
    _home: TempDir,
    ports: [u16; 4],
}

impl Backends {
    pub async fn start() -> Result<Self> {
        let home = TempDir::new()?;
        let ports = [free_port()?, free_port()?, free_port()?, free_port()?];
        let server = |(port, protocol): (&u16, &str)| {
            format!(
                "server {{ listen 127.0.0.1:{port} {protocol}; location / {{ return 200; }} \
                 client_max_body_size 0; keepalive_requests 1000000000; \
                 http2_max_concurrent_streams 1000; }}"
            )
        };
        let servers: String = ports.iter().zip(["", "", "http2", "http2"]).map(server).collect();
        let top = home.path().display();
        let config = format!(
            "daemon off; worker_processes 1; pid {top}/pid; error_log stderr error;\n\
             events {{ worker_connections 8192; }}\n\
             http {{ access_log off; client_body_temp_path {top}/body; {servers} }}\n"
        );
        let path = home.path().join("nginx.conf");
        std::fs::write(&path, config)?;
        let nginx = Command::new("taskset")
            .args(["-c", &OTHER_CORE.to_string(), "nginx", "-c"])
            .arg(&path)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot run nginx")?;
        let backends = Self { nginx, _home: home, ports };
        for port in ports {
            rig::eventually("nginx to listen", async || {
                Ok(std::net::TcpStream::connect(("127.0.0.1", port)).map(drop)?)
            })
            .await?;
        }
        Ok(backends)
    }

    /// An Envoy with so many workers before them.
    pub fn setup(&self, workers: u32) -> Result<Setup> {
        Ok(Setup::new()?
            .workers(workers)
            .cluster("primary", &[self.primary()])
            .cluster("shadow", &[self.shadow()]))
    }

    pub fn primary(&self) -> SocketAddr {
        self.address(0)
    }

    pub fn shadow(&self) -> SocketAddr {
        self.address(1)
    }

    pub fn http2_primary(&self) -> SocketAddr {
        self.address(2)
    }

    pub fn http2_shadow(&self) -> SocketAddr {
        self.address(3)
    }

    fn address(&self, port: usize) -> SocketAddr {
        ([127, 0, 0, 1], self.ports[port]).into()
    }
}

impl Drop for Backends {
    fn drop(&mut self) {
        // nginx ends its workers when it is asked, and leaves them behind when it is killed.
        let _ = Command::new("kill").arg(self.nginx.id().to_string()).status();
        let _ = self.nginx.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
