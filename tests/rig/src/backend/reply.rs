//! What a backend may do to a request.

use std::time::Duration;

use tokio::sync::watch;

use crate::message::Response;

/// What to do to a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answer once the request is whole.
    Respond(Response),
    /// Answer once the request is whole and the gate is open.
    After(Gate, Response),
    /// Answer once the request is whole and that much time has passed.
    Later(Duration, Response),
    /// Answer, and close the connection without having announced it.
    RespondAndClose(Response),
    /// Answer to the head alone, and close. The rest of the request is not read.
    Early(Response),
    /// Answer with the head of this response; its body never comes.
    Stall(Response),
    /// Read the request and never answer.
    Never,
    /// Read the request, then reset.
    Reset,
    /// Answer the head with this head, then send back every byte that comes (HTTP/1).
    Tunnel(Response),
}

/// What holds answers back until a test opens it.
#[derive(Clone, Debug, Default)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    pub fn closed() -> Self {
        Self::default()
    }

    /// Lets everything through, from now on.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn opened(&self) {
        // Cannot fail: this very gate is a sender.
        let _ = self.0.subscribe().wait_for(|open| *open).await;
    }
}
