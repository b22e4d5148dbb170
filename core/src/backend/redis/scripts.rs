//! The Lua scripts. All keys go in KEYS and all values in ARGV: nothing is spliced into a script.

use redis::{Arg, Cmd};

use crate::process::Constant;

/// A script and the hash by which the server knows it once it has run.
pub(super) struct Script {
    source: &'static str,
    sha1: String,
}

macro_rules! script {
    ($($part:literal),+) => {
        Constant::new(|| {
            let source = concat!($(include_str!($part)),+);
            Script { source, sha1: redis::Script::new(source).get_hash().to_owned() }
        })
    };
}

pub(super) static CONTEND: Constant<Script> = script!("lua/common.lua", "lua/contend.lua");
pub(super) static RELEASE: Constant<Script> = script!("lua/common.lua", "lua/release.lua");
pub(super) static RENEW: Constant<Script> = script!("lua/renew.lua");
pub(super) static FORCE_RELEASE: Constant<Script> =
    script!("lua/common.lua", "lua/force_release.lua");
pub(super) static INSPECT: Constant<Script> = script!("lua/inspect.lua");
pub(super) static RIGHTS: Constant<Script> = script!("lua/rights.lua");

impl Script {
    /// A call by hash, still without its keys and arguments, which the caller adds in this order.
    pub(super) fn call(&self, keys: usize) -> Cmd {
        let mut command = Cmd::with_capacity(12, 512);
        command.arg("EVALSHA").arg(&self.sha1).arg(keys);
        command
    }

    /// The same call with the whole script, for a server that does not know it (any more).
    pub(super) fn with_source(&self, call: &Cmd) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.source);
        for arg in call.args_iter().skip(2) {
            if let Arg::Simple(arg) = arg {
                command.arg(arg);
            }
        }
        command
    }
}
