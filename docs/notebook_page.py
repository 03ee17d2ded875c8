"""Makes a page of the notebook examples/first_duel.ipynb when the site is built. Its cells run nothing here."""

import json
from pathlib import Path

from mkdocs.structure.files import File, Files

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "first_duel.ipynb"
PAGE = "first-duel.md"


def on_files(files: Files, config) -> Files:  # type: ignore[no-untyped-def]  # mkdocs' own name of this hook
    files.append(File.generated(config, PAGE, content=as_markdown(json.loads(NOTEBOOK.read_text(encoding="utf-8")))))
    return files


def as_markdown(notebook: dict) -> str:  # type: ignore[type-arg]
    """Text as it is, code and what it printed in fences."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"````python\n{source}\n````")
        for output in cell.get("outputs", ()):
            if output["output_type"] == "stream":
                parts.append(f"````text\n{''.join(output['text']).rstrip()}\n````")
    return "\n\n".join(parts) + "\n"
