"""What Jinja itself makes of templates, in an environment like HuggingFace's.

    reference.py templates FOLDER    every *.jinja with conversations.json
    reference.py snippets FILE       every template in snippets.json

Prints one JSON object: results by name, {"text": ...} or {"error": ...}; the
files expected.json are this output. Needs python3-jinja2; exits with 77 where it
is missing.
"""
import datetime
import json
import pathlib
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.nodes
    import jinja2.sandbox
except ImportError:
    sys.exit(77)

NOW = datetime.datetime(2026, 3, 14, 15, 9, 26)


class Generation(jinja2.ext.Extension):
    """{% generation %} prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_print")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols],
    )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def to_json(x, ensure_ascii=False, indent=None, separators=None,
                sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                          separators=separators, sort_keys=sort_keys)

    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = NOW.strftime
    return made


ENVIRONMENT = environment()


def render(source, variables):
    try:
        return {"text": ENVIRONMENT.from_string(source).render(**variables)}
    except Exception as error:  # whatever a template may do
        return {"error": str(error)}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def of_templates(folder):
    conversations = read(folder / "conversations.json")
    results = {}
    for path in sorted(folder.glob("*.jinja")):
        # As it is in a model's file, newlines included.
        source = path.read_bytes().decode("utf-8")
        for conversation in conversations:
            variables = dict(conversation.get("variables", {}))
            variables.setdefault("documents", None)
            variables.update(
                messages=conversation["messages"],
                tools=conversation.get("tools"),
                add_generation_prompt=conversation.get(
                    "add_generation_prompt", True),
                bos_token="<s>",
                eos_token="</s>",
            )
            name = f"{path.stem}: {conversation['name']}"
            results[name] = render(source, variables)
    return results


def of_snippets(path):
    snippets = read(path)
    return {source: render(source, snippets["variables"])
            for source in snippets["templates"]}


def main():
    path = pathlib.Path(sys.argv[2])
    make = of_templates if sys.argv[1] == "templates" else of_snippets
    json.dump(make(path), sys.stdout, ensure_ascii=True, indent=1)
    print()


main()
