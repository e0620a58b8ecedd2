"""Doubts: for each claim a small change under which it is false.

    python -m tools.doubts [NN …]      what has no current result (make doubt)
    python -m tools.doubts --list      one line each, chapter number first
    python -m tools.doubts --changed   where the course changed, not its versions
    python -m tools.doubts --again     also what has a current result

An assertion that can't fail proves nothing. So the claims of a chapter have their
doubts, in `book/doubts/<chapter>.toml`, one table `[[doubt]]` each:

    name       what is changed, in a few words
    claim      the sentence that would be false
    old, new   the change: `old` occurs exactly once in the chapter's code
    fails_at   a piece of the one assertion that has to notice
    cheap      true: nothing is trained on the way, so `make test` runs it
    file       the change is made in this file of the package instead
    experiment the smoke run of this script of `book/experiments` and its `check` stand
               in place of the chapter

The change is made in a copy, and the cells run up to that assertion in a process of
their own. The claim is *refuted* if it fails there. A doubt that survives, or that
fails anywhere else, is a defect. Results are stored in `book/doubts/results.json`, one
at a time: interrupted, the next call goes on.
"""
