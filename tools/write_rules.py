"""Write the generated pages of ``docs/``: the rules and warnings, and the fields of the 128 bytes."""

from pathlib import Path

from cuda_tma import codec, rules

PAGES = {"rules.md": rules.markdown, "fields.md": codec.markdown}

if __name__ == "__main__":
    for name, markdown in PAGES.items():
        Path(__file__).parent.parent.joinpath("docs", name).write_text(markdown())
