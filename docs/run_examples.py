"""Run the examples as notebooks, and write a page with what each printed and drew into docs/examples/.

`make examples` calls this. Code is fenced as "py": the tests run the scripts themselves.
"""

import base64
import html
import re
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

import jupytext
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "examples"


def fenced(language, text):
    return f"```{language}\n{text.strip()}\n```"


def picture(page, path):
    """Write the first picture of a report, and return the line that shows it."""
    found = re.search(r'<img src="data:image/svg\+xml([^,]*),([^"]*)" alt="([^"]*)"', html.unescape(page))
    if found is None:
        return ""
    coding, body, alternative = found.groups()
    path.write_bytes(base64.b64decode(body) if "base64" in coding else unquote(body).encode())
    return f"The report has this picture, and what is proven:\n\n![{html.unescape(alternative)}]({path.name})"


def shown(output, path):
    if output["output_type"] == "stream":
        return fenced("text", output["text"]) if output["name"] == "stdout" else ""
    data = output.get("data", {})
    if "text/html" in data and "<iframe" in data["text/html"]:
        return picture(data["text/html"], path)
    return fenced("text", data["text/plain"]) if "text/plain" in data else ""


def page(script):
    notebook = jupytext.read(script)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(script.parent, folder, dirs_exist_ok=True)
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(fenced("py", cell.source))
        parts += [shown(output, PAGES / f"{script.stem}.svg") for output in cell.outputs]
    note = f"*Run by `make examples` from `examples/{script.name}`, with what it printed.*"
    title, _, rest = parts[0].partition("\n")
    return "\n\n".join(part for part in [title, note, rest.strip(), *parts[1:]] if part) + "\n"


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or sorted(path.stem for path in (ROOT / "examples").glob("*.py")):
        (PAGES / f"{name}.md").write_text(page(ROOT / "examples" / f"{name}.py"), encoding="utf-8")
        sys.stdout.write(f"written: {PAGES / f'{name}.md'}\n")
