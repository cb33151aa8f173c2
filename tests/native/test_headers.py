"""Precompiled headers: the same machine code, the compiler's words about the whole text, and a cache that does not grow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warpwright import native
from warpwright.native import headers

HEAD = """// a comment that changes
#pragma GCC optimize("no-math-errno")
#include <cstdlib>
static inline float twice(float x) { return 2 * x; }
"""
BODY = """
extern "C" void sizes(float* a, int n) { for (int i = 0; i < n; ++i) a[i] = twice(std::abs(a[i])); }
"""

pytestmark = pytest.mark.compiler


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    return tmp_path


def build(text: str, **options: Any) -> Path:
    """Build a text that begins as one before it."""
    native.build(f"{text}// before\n", **options)
    return native.build(text, **options)


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "headers").glob("*/head.hpp.gch"))


def test_the_machine_code_is_that_of_the_whole_text(cache: Path) -> None:
    native.build(f"{HEAD}{headers.MARK}\nint other;\n")
    assert not kept(cache), "what comes once is not worth a header"
    quick = native.build(f"{HEAD}{headers.MARK}{BODY}").read_bytes()
    assert len(kept(cache)) == 1
    assert quick == native.build(HEAD + BODY).read_bytes()
    assert len(kept(cache)) == 1


def test_one_header_serves_all_texts_that_begin_alike(cache: Path) -> None:
    for comment in ("// one\n", "// two\n// lines\n", ""):
        native.build(f"{comment}{HEAD}{headers.MARK}{BODY}{comment}", flags=("-O1", "-shared", "-fPIC"))
    assert len(kept(cache)) == 1
    build(f"{HEAD}{headers.MARK}{BODY}", flags=("-O2", "-shared", "-fPIC"))
    assert len(kept(cache)) == 2


def test_lines_are_counted_in_the_whole_text(cache: Path) -> None:
    text = f"{HEAD}{headers.MARK}{BODY}"
    said = 'extern "C" int where() { return __LINE__; }\n'
    library = native.load(build(text + said))
    assert kept(cache)
    assert library.where() == text.count("\n") + 1
    wrong = native.syntax_errors(f"{text}int x = y;\n", "wrong.cpp")
    assert f"wrong.cpp:{text.count(chr(10)) + 1}:" in wrong
    assert native.syntax_errors(text, "right.cpp") == ""


def test_a_head_that_the_compiler_refuses_is_an_error_of_the_text(cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(native.BuildError, match="no_such_type"):
            native.build(f"no_such_type x;\n{headers.MARK}\n")
    assert not kept(cache)


@pytest.mark.slow
def test_a_damaged_header_costs_time_only(cache: Path) -> None:
    text = f"{HEAD}{headers.MARK}{BODY}"
    build(text)
    (path,) = kept(cache)
    path.write_bytes(path.read_bytes()[:1000])
    native.build(f"{text}// another\n")
    path.unlink()
    native.build(f"{text}// a third\n")
    assert len(list(cache.glob("*.so"))) == 4


def test_a_header_that_another_user_may_have_written_is_not_used(cache: Path) -> None:
    text = f"{HEAD}{headers.MARK}{BODY}"
    right = build(text).read_bytes()
    [compiled] = kept(cache)
    compiled.unlink()
    header = compiled.with_name("head.hpp")
    header.write_text("extern \"C\" int planted() { return 7; }\n" + HEAD)
    header.chmod(0o666)
    assert native.build(f"{text}// after\n").read_bytes() == right


def test_the_oldest_headers_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "KEPT", 2)
    for number in range(3):
        build(f"int number{number};\n{headers.MARK}\n")
    assert len(kept(cache)) == 2
