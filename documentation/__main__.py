"""`python -m documentation`: writes the generated reference pages."""

from documentation.reference import pages

for page, text in pages().items():
    page.parent.mkdir(exist_ok=True)
    page.write_text(text)
    print(page)
