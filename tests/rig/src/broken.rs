//! Addresses behind which nothing answers.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// A port that refuses connections. It stays taken, so that nobody else starts to listen on it.
#[derive(Debug)]
pub struct ClosedPort(TcpSocket);

impl ClosedPort {
    pub fn new() -> Result<Self> {
        Ok(Self(bound()?)) // bound, never listening
    }

    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }
}

/// A port where a connection never comes about: the backlog is full, and packets vanish.
#[derive(Debug)]
pub struct BlackHole {
    address: SocketAddr,
    _listener: TcpListener,
    _backlog: TcpStream,
}

impl BlackHole {
    pub async fn new() -> Result<Self> {
        let listener = bound()?.listen(0)?;
        let address = listener.local_addr()?;
        let backlog = TcpStream::connect(address).await?; // a backlog of 0 holds one
        Ok(Self { address, _listener: listener, _backlog: backlog })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A port that accepts each connection and resets it at once.
#[derive(Debug)]
pub struct Reset {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Reset {
    pub async fn new() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                reset(&stream);
            }
        });
        Ok(Self { address, accepting })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Reset {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A port that accepts connections, holds them and never reads a byte.
#[derive(Debug)]
pub struct Deaf {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Deaf {
    pub async fn new() -> Result<Self> {
        let socket = bound()?;
        socket.set_recv_buffer_size(4096)?; // so that a sender soon finds no room
        let listener = socket.listen(1024)?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        });
        Ok(Self { address, accepting })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Makes the close of this connection a reset.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger(); // fails only for a connection that is gone already
}

fn bound() -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok(socket)
}
