"""``teeny explain``: what a finding means."""

from __future__ import annotations

import click

from teenycli.commands.choice import known_ids
from teenycli.commands.options import output_options
from teenycli.exits import Exit
from teenycli.explain import groups, page
from teenycli.report.console import Console
from teenycli.report.explain_page import explain_document, explain_list, explain_page


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@output_options
def explain(ids: tuple[str, ...], as_json: bool, quiet: bool, verbose: bool, color: str) -> Exit:  # noqa: ARG001
    """Explain findings by their ids: what goes wrong, why, an example that fails, the cure.

    ID is what stands in brackets after "error", or the first words of several. Without one, all ids are listed.
    """
    console = Console.of_process(color)
    pages = [page(id) for id in known_ids(ids) or groups()]
    if as_json:
        console.document([explain_document(one) for one in pages])
    elif ids or verbose:
        for place, one in enumerate(pages):
            console.show(*(["", ""] if place else []), *explain_page(one))
    else:
        console.show(*explain_list(pages))
    return Exit.OK
