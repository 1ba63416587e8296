"""The notebook of the examples runs from top to bottom."""

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "first_steps.ipynb"


@pytest.mark.full
def test_the_notebook_runs():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    plots = [out for cell in book.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(plots) == 2
    assert "last crawl" in str(book.cells[-1]["outputs"])


def test_the_notebook_works_without_a_kernel():
    """The same code, in this process: cheap enough for every run."""
    import json

    import matplotlib as mpl

    mpl.use("Agg")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    assert abs(names["truth"][-1] - names["believed"][-1]) < 0.15
    assert 0 < names["forecast"].freshness < 1
