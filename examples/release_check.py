# %% [markdown]
# # A release check in a CI pipeline
#
# Models are trained again every week, and nobody looks at each of them. The pipeline should refuse one that gives away
# its training records. `tacit audit --require-advantage 0.1` is such a check: it exits with 1 unless it is *proven*
# that nobody who sees the score tells training records from others with an advantage of more than 0.1, the ceiling.
#
# Beside this file are `release_check/check.sh`, the check; `release_check/release.yml`, a pipeline in GitHub Actions
# that publishes only where it passes; and `release_check/train.py`, in the place of your training. Here they run by
# hand.
#
# Needs `pip install 'tacit-privacy[tables]'`. Takes about twenty seconds.

# %%
import json
import subprocess
import sys
from pathlib import Path

folder = Path(__file__).parent if "__file__" in globals() else Path()
print((folder / "release_check" / "check.sh").read_text())

# %% [markdown]
# ## A model that may go out, and one that may not
#
# The first forms no group of fewer than 40 training records. The second learned them by heart. Both are useful, and
# the second is even better on digits that it never saw: accuracy does not show what a score gives away.

# %%
results = {}
for size in ("small", "large"):
    subprocess.run([sys.executable, folder / "release_check" / "train.py", size, f"{size}.csv"], check=True)
    command = ["sh", folder / "release_check" / "check.sh", f"{size}.csv", "0.1"]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    detail = json.loads(Path("check.json").read_text(encoding="utf-8"))["detail"]
    results[size] = {"exit": check.returncode, **{name: detail[name] for name in ("met", "low", "high")}}
    print(f"{size}: exit code {check.returncode}")
    print(check.stdout.partition("The secret, column")[0])

# %% [markdown]
# `low` is what an attack has shown, `high` what nobody exceeds. Where an attack beats the ceiling the verdict is
# *broken*; where only the certificate exceeds it, *not proven*, and more rows may help. The check fails in both cases.
# `check.html` is the page to look at.

# %%
Path("release_check.json").write_text(json.dumps(results, indent=2), encoding="utf-8")
results
