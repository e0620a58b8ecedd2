"""Text that every Python carries, and the vocabulary that turns it into numbers.

Two corpora need no download: the help topics of `pydoc_data.topics` and the docstrings
of the standard library, read from its source with `ast` and never imported. Both are a
little different in every version of Python: numbers made from them will be, too.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

# ---------------------------------------------------------------------- clear errors


def require_text(text: object, name: str = "text") -> None:
    """Refuse what is no text, naming what came."""
    if not isinstance(text, str):
        raise ValueError(f"{name} is {text!r:.40}, expected text, in quotes.")


def require_several(name: str, items: object) -> None:
    """Refuse what can't be gone through, one after the other."""
    if not isinstance(items, Iterable):
        raise ValueError(f"{name} is {items!r:.40}, expected several, such as a list.")


def require_counts(**counts: object) -> None:
    """Refuse what is no whole number from 0, naming the first of them."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(
                f"{name} is {count!r:.40}, expected a whole number from 0."
            )


# ----------------------------------------------------------------------- help topics


def topics() -> dict[str, str]:
    """Return Python's help topics, by name: 79 documents on one subject each.

    Taught in chapter 01.
    """
    from pydoc_data.topics import topics as texts

    return {name: texts[name] for name in sorted(texts)}


def words(text: str) -> list[str]:
    """Cut a text into its words, in lower case: runs of letters and nothing else.

    Used in chapter 01.
    """
    require_text(text)
    return re.findall(r"[a-z]+", text.lower())


def paragraphs(text: str) -> list[str]:
    """Cut a text at its empty lines; indentation inside a paragraph stays."""
    require_text(text)
    return [p.strip() for p in re.split(r"\n\s*\n", text) if p.strip()]


def pydoc_text() -> str:
    """Return the help topics as one text in which no paragraph comes twice.

    Topics quote each other: without this a held-out topic is mostly known already (see
    `leaked_share`). Taught in chapter 13.
    """
    every = (p for text in topics().values() for p in paragraphs(text))
    return "\n\n".join(dict.fromkeys(every))


class Split(NamedTuple):
    """Three texts: to learn from, to choose by, to report on."""

    train: str
    validation: str
    test: str


def split_blocks(
    text: str | Sequence[str],
    validation: float = 0.1,
    test: float = 0.0,
    n_blocks: int = 50,
    seed: int = 0,
) -> Split:
    """Hold out whole blocks of neighbouring paragraphs, drawn by `seed`.

    A paragraph's neighbours speak of the same thing: held out one by one, paragraphs
    would be guessed from what stands beside them. The shares are of characters, as near
    as blocks allow. Used in chapter 13.
    """
    shares = all(isinstance(share, (int, float)) for share in (validation, test))
    if not (shares and validation >= 0 and test >= 0 and validation + test < 1):
        raise ValueError(
            f"split_blocks got validation={validation} and test={test}, expected "
            "shares from 0 whose sum is below 1, such as 0.1 and 0.1."
        )
    require_counts(n_blocks=n_blocks, seed=seed)
    require_several("text", text)
    text = text if isinstance(text, str) else "\n\n".join(text)
    parts = paragraphs(text)
    if not 2 <= n_blocks <= len(parts):
        raise ValueError(
            f"split_blocks got n_blocks={n_blocks} for {len(parts)} paragraphs, "
            "expected from 2 to one block per paragraph; choose fewer blocks or a "
            "longer text."
        )
    total = sum(map(len, parts))
    blocks: list[list[str]] = [[] for _ in range(n_blocks)]
    done = 0
    for part in parts:
        blocks[min(n_blocks - 1, done * n_blocks // total)].append(part)
        done += len(part)
    blocks = [block for block in blocks if block]  # a long paragraph leaves some empty
    n_blocks = len(blocks)

    order = list(range(n_blocks))
    random.Random(seed).shuffle(order)
    wanted = {"validation": validation * total, "test": test * total}
    held: dict[int, str] = {}
    for name, room in wanted.items():
        while room > 0 and len(held) < n_blocks - 1:
            block = order[len(held)]
            size = sum(map(len, blocks[block]))
            if size / 2 > room:
                break
            held[block] = name
            room -= size
    kept: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    for index, block_parts in enumerate(blocks):
        kept[held.get(index, "train")] += block_parts
    return Split(**{name: "\n\n".join(found) for name, found in kept.items()})


def leaked_share(train: str, validation: str) -> float:
    """Measure how much of a validation text was in the training text, word for word.

    The share of validation characters in paragraphs that the training text has too;
    above a few percent, a validation loss measures memory. Taught in chapter 13.
    """
    seen, held = set(paragraphs(train)), paragraphs(validation)
    if not held:
        raise ValueError(
            "the validation text has no paragraph, so no share of it can be known; "
            "hold out a larger part."
        )
    return sum(len(p) for p in held if p in seen) / sum(map(len, held))


# ------------------------------------------------------------------------ docstrings


class Docstring(NamedTuple):
    """What a function or class of the standard library says of itself."""

    module: str
    name: str
    text: str


def docstrings(modules: Iterable[str]) -> list[Docstring]:
    """Read the docstrings of top-level modules from their source, importing nothing.

    Tests inside a package are left out. Used in chapter 01.
    """
    if isinstance(modules, str):
        raise ValueError(
            f"docstrings got the one string {modules!r}, expected several module "
            f"names; write docstrings([{modules!r}])."
        )
    require_several("modules", modules)
    found = []
    for module in modules:
        for path in _source_files(module):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(
                    node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
                ):
                    text = ast.get_docstring(node)
                    if text:
                        found.append(Docstring(module, node.name, text))
    return found


def _source_files(module: str) -> Iterator[Path]:
    """Yield the files of one module of the installed standard library, in order."""
    library = Path(sysconfig.get_paths()["stdlib"])
    package, single = library / module, library / f"{module}.py"
    if single.is_file():
        yield single
    elif module.isidentifier() and (package / "__init__.py").is_file():
        for path in sorted(package.rglob("*.py")):
            if not {"test", "tests"} & set(path.relative_to(package).parts):
                yield path
    else:
        raise ValueError(
            f"module {module!r} has no source in {library}, expected the name of a "
            "top-level module of the standard library that is written in Python."
        )


MODULES = (
    "asyncio",
    "importlib",
    "email",
    "logging",
    "_pydecimal",
    "xml",
    "turtle",
    "multiprocessing",
    "unittest",
    "mailbox",
    "http",
    "tarfile",
)
"""The twelve classes of `module_docstrings`; a label is a place in this tuple."""


def module_docstrings(
    min_words: int = 5, max_words: int = 80
) -> list[tuple[list[str], int]]:
    """Return docstrings as (words, label): which of `MODULES` does each come from?

    Words that contain a module's name are removed, for they would be the answer; no
    text comes twice. Some 2,300 documents. Used in chapter 01.
    """
    require_counts(min_words=min_words, max_words=max_words)
    if not 1 <= min_words <= max_words:
        raise ValueError(
            f"module_docstrings got min_words={min_words} and max_words={max_words}, "
            "expected 1 <= min_words <= max_words."
        )
    names = "|".join(name.removeprefix("_py") for name in MODULES)
    telling = re.compile(rf"{names}|^tar$")
    documents: dict[tuple[str, ...], int] = {}
    for doc in docstrings(MODULES):
        kept = [word for word in words(doc.text) if not telling.search(word)]
        if len(kept) >= min_words:
            documents.setdefault(tuple(kept[:max_words]), MODULES.index(doc.module))
    return [(list(kept), label) for kept, label in documents.items()]


# ------------------------------------------------------------------------ vocabulary

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocabulary:
    """The two-way table between tokens and ids, for words as for characters.

    Ids 0 to 3 are padding, begin, end and unknown in every vocabulary of the course;
    the tokens follow, the most frequent first. Used in chapters 01, 03 and 12.
    """

    def __init__(self, sequences: Iterable[Iterable[str]], min_count: int = 1):
        if isinstance(sequences, str):
            raise ValueError(
                "Vocabulary got one string, expected several sequences of tokens; "
                "write Vocabulary([text]) for the characters of a text."
            )
        require_several("sequences", sequences)
        require_counts(min_count=min_count)
        counts = Counter(token for sequence in sequences for token in sequence)
        clash = sorted(set(SPECIALS) & counts.keys())
        if clash:
            raise ValueError(
                f"the text holds {', '.join(clash)}, which the vocabulary keeps for "
                "itself; rename it in the text."
            )
        common = [token for token in counts if counts[token] >= min_count]
        common.sort(key=lambda token: (-counts[token], token))
        self.tokens: tuple[str, ...] = (*SPECIALS, *common)
        self.ids: dict[str, int] = {token: i for i, token in enumerate(self.tokens)}
        self.of_characters = all(len(token) == 1 for token in common)

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self.ids

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} tokens, {len(SPECIALS)} of them special"

    def encode(
        self, sequence: Iterable[str], bos: bool = False, eos: bool = False
    ) -> list[int]:
        """Turn tokens into ids, unknown ones into `UNK`; add begin and end if asked."""
        if isinstance(sequence, str) and not self.of_characters:
            raise ValueError(
                f"encode got the string {sequence[:20]!r}, but this vocabulary holds "
                "words; split it into a list of tokens first."
            )
        require_several("sequence", sequence)
        tokens = list(sequence)
        if not all(isinstance(token, str) for token in tokens):
            raise ValueError(
                f"encode got {tokens[:5]}, expected tokens, which are strings; are "
                "these ids already?"
            )
        ids = [self.ids.get(token, UNK) for token in tokens]
        return [BOS] * bos + ids + [EOS] * eos

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Turn ids back into tokens, up to the first end, less begin and padding."""
        require_several("ids", ids)
        found = []
        for i in map(int, ids):
            if not 0 <= i < len(self):
                raise ValueError(
                    f"id {i} is not in this vocabulary, expected 0 to {len(self) - 1}; "
                    "was it made by another vocabulary?"
                )
            if i == EOS:
                break
            if i not in (PAD, BOS):
                found.append(self.tokens[i])
        return found
