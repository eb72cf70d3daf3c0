"""Write ``docs/rules.md`` from the tables of rules and warnings."""

from pathlib import Path

from cuda_tma.rules import markdown

if __name__ == "__main__":
    Path(__file__).parent.parent.joinpath("docs", "rules.md").write_text(markdown())
