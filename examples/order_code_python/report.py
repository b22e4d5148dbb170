"""What was drawn, and whether it went as promised."""

from itertools import pairwise

from worker import Draw


class Report:
    """What came of a run."""

    def __init__(self, place: str, locked: bool, draws: list[Draw]) -> None:
        self._place = place
        self._locked = locked
        # In the order in which the lock was granted; without a lock, of the codes.
        self._draws = sorted(draws, key=lambda draw: (draw.token, draw.code))
        self._different = len({draw.code for draw in draws})

    def _codes_rise(self) -> bool:
        """Whether each grant gave a greater code than the one before."""
        return all(a.token < b.token and a.code < b.code for a, b in pairwise(self._draws))

    def is_as_promised(self) -> bool:
        """Without the lock nothing is promised."""
        return not self._locked or (self._different == len(self._draws) and self._codes_rise())

    def text(self) -> str:
        """The codes and figures, one a line."""
        threads = len(self._draws)
        lines = [f"Order codes: {threads} threads, {self._place}"]
        for draw in self._draws:
            lines.append(f"{draw.code}  token {draw.token}" if self._locked else f"{draw.code}")
        lines += [f"drawn       {threads}", f"different   {self._different}"]
        if not self._locked:
            again = threads - self._different
            lines.append(f"WITHOUT THE LOCK: {again} of {threads} orders got a code that was taken")
            return "\n".join(lines)
        longest = max(draw.waited for draw in self._draws)
        rise = "rise" if self._codes_rise() else "DO NOT RISE"
        ok = "OK: every order has a code of its own"
        return "\n".join(
            [
                *lines,
                f"longest     {longest * 1000:.2f} ms of waiting",
                f"codes       {rise} in the order of the grants",
                ok if self.is_as_promised() else "FAILED: see the figures above",
            ]
        )
