"""Graphs read from files: triples by name and by number, RDF, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright.domains.rgnn.loaders import n_triples, triples
from warpwright.errors import UsageError


def test_triples_by_name_and_by_number_are_one_graph(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("a\tlikes\tb\nb\tknows\tc\na\tknows\tc\n")
    (tmp_path / "numbers.txt").write_text("3\n0 1 0\n1 2 1\n0 2 1\n")
    first, second = triples(tmp_path / "names.txt"), triples(tmp_path / "numbers.txt")
    assert first.relations == second.relations == ((0, 0, 1), (0, 0, 2)) and first.count == second.count == 3
    assert first.edge_index.tolist() == second.edge_index.tolist() == [[0, 1, 0], [1, 2, 2]]


def test_rdf_leaves_literals_out_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "small.nt"
    file.write_text('<http://a> <http://p> <http://b> .\n# a comment\n_:x <http://q> "a text . with a dot"@en .\n<http://b> <http://p> _:x .\n')
    assert n_triples(file).edge_type.tolist() == [0, 0] and n_triples(file).count == 3
    assert n_triples(file, literals=True).edge_type.tolist() == [0, 0, 1]


@pytest.mark.parametrize("text", ["a b\n", "2\n0 1 0\n", "1\n0 1\n"])
def test_what_is_no_triple_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "wrong.txt").write_text(text)
    with pytest.raises(UsageError, match="expected"):
        triples(tmp_path / "wrong.txt")
