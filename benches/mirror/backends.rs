//! Backends that do the same for each request: two nginx that answer with an empty 200.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

pub struct Backends {
    nginx: Child,
    _home: TempDir,
    ports: [u16; 2],
}

impl Backends {
    pub async fn start(core: usize) -> Result<Self> {
        let home = TempDir::new()?;
        let ports = [free_port()?, free_port()?];
        let server = |port: &u16| {
            format!(
                "server {{ listen 127.0.0.1:{port}; location / {{ return 200; }} \
                 client_max_body_size 0; keepalive_requests 1000000000; }}"
            )
        };
        let servers: String = ports.iter().map(server).collect();
        let top = home.path().display();
        let config = format!(
            "daemon off; worker_processes 1; pid {top}/pid; error_log stderr error;\n\
             events {{ worker_connections 8192; }}\n\
             http {{ access_log off; client_body_temp_path {top}/body; {servers} }}\n"
        );
        let path = home.path().join("nginx.conf");
        std::fs::write(&path, config)?;
        let nginx = Command::new("taskset")
            .args(["-c", &core.to_string(), "nginx", "-c"])
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

    pub fn primary(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.ports[0]).into()
    }

    pub fn shadow(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.ports[1]).into()
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
