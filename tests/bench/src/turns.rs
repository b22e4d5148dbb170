//! Two things measured in turns, each of them first as often as second.

use anyhow::Result;
use fencelock_test_support::samples::Samples;

use crate::report::Pair;

/// One turn of each warms up.
pub(crate) async fn alternate<A, B>(
    rounds: u32,
    mut ours: impl FnMut() -> A,
    mut other: impl FnMut() -> B,
) -> Result<Pair>
where
    A: Future<Output = Result<Samples>>,
    B: Future<Output = Result<Samples>>,
{
    ours().await?;
    other().await?;
    let mut pair = Pair::default();
    for round in 0..rounds {
        if round % 2 == 0 {
            let turn = ours().await?;
            pair.turn(turn, other().await?);
        } else {
            let turn = other().await?;
            pair.turn(ours().await?, turn);
        }
    }
    Ok(pair)
}
