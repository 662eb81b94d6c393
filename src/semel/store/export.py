"""The schema as a migration file of another tool, for teams whose migrations all go through that tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from textwrap import indent
from types import MappingProxyType
from typing import Final, Literal, cast, get_args

from semel.errors import ConfigurationError
from semel.sql import Catalogue, read
from semel.sql.script import split, without_comments
from semel.store.guard_tables import create_statements, drop_statements
from semel.store.migrate import Step, load_steps
from semel.version import __version__

Format = Literal["sql", "alembic", "django", "goose", "rails"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)

_JOBS_DELETED = "The way down deletes every job, every operation, their history and their events."
_OPERATIONS_DELETED = (
    "The way down deletes every operation: what is delivered again after it is acted on again."
)


@dataclass(frozen=True, slots=True)
class Script:
    """What a file is made of: a title, the statements up, and those down (none: there is no way back)."""

    name: str
    title: str
    up: tuple[str, ...]
    down: tuple[str, ...]
    warning: str = _JOBS_DELETED
    transactional: bool = True
    """Whether the database rolls a half-made schema back."""


def export(
    format: str,  # noqa: A002 - the word of the command line
    schema: str = "semel",
    *,
    since: int = 0,
    down: bool = False,
    directory: Traversable | None = None,
) -> str:
    """The text of one migration file that brings a schema from version ``since`` to this package's.

    Up and down in one file, but for "sql", where ``down`` chooses. There is a way down only from nothing on
    (``since`` 0). The file notes its steps in the schema's migrations, so `semel migrate` goes on from there.
    """
    return _write(format, _script(schema, since, load_steps(directory)), down)


def export_guard(
    format: str,  # noqa: A002 - the word of the command line
    dialect: str = "postgresql",
    schema: str = "semel",
    *,
    down: bool = False,
) -> str:
    """The text of one migration file with the guard's tables alone, for an application without the queue.

    On PostgreSQL they are those of the queue's schema version 2, but no version is noted: such a schema is the guard's only.
    """
    return _write(format, _guard_script(dialect, schema), down)


def _write(format_: str, script: Script, down: bool) -> str:
    if format_ not in FORMATS:
        raise ConfigurationError(
            f"{format_!r} is not a format of migration files.", remedy=f"One of: {', '.join(FORMATS)}."
        )
    if format_ == "sql":
        return _sql(script, down)
    return _WRITERS[cast("Format", format_)](script)


def _guard_script(dialect: str, schema: str) -> Script:
    where = f"the schema {schema}" if dialect == "postgresql" else dialect
    return Script(
        name="guard",
        title=f"semel {__version__}: the guard's tables for {where}.",
        up=tuple(create_statements(dialect, schema)),
        down=tuple(drop_statements(dialect, schema)),
        warning=_OPERATIONS_DELETED,
        transactional=dialect != "mysql",
    )


def _script(schema: str, since: int, steps: Sequence[Step]) -> Script:
    catalogue = Catalogue(schema)
    wanted = [step for step in steps if step.version > since]
    if not wanted:
        raise ConfigurationError(
            f"This package has no schema version after {since}.", remedy="Give a smaller --since."
        )
    up: list[str] = []
    for step in wanted:
        up += split(catalogue.fill(step.raw))
        up.append(
            f"INSERT INTO {catalogue.fill('{schema}')}.migrations (version, step, name) "
            f"VALUES ({step.version}, '{step.phase}', '{step.name}')"
        )
    down = () if since else tuple(split(catalogue.fill(read("schema/drop.sql"))))
    newest = wanted[-1].version
    title = f"semel {__version__}: the schema {schema} from version {since} to {newest}."
    return Script(f"{newest:04}", title, tuple(up), down)


def _sql(script: Script, down: bool) -> str:
    if down and not script.down:
        raise ConfigurationError("There is no way back from this version.", remedy="Restore a backup.")
    statements = script.down if down else script.up
    head = f"-- {script.title}{' The way down.' if down else ''}\n"
    if down:
        head += f"-- {script.warning}\n"
    body = "".join(f"{statement};\n\n" for statement in statements)
    return f"{head}BEGIN;\n\n{body}COMMIT;\n" if script.transactional else f"{head}\n{body.rstrip()}\n"


def _alembic(script: Script) -> str:
    def calls(statements: Sequence[str]) -> str:
        return "\n".join(f"    execute({_raw(one)})" for one in _bare(statements))

    return f'''"""{script.title}

{script.warning}
"""

from alembic import context, op

revision = "semel_{script.name}"
down_revision = None  # put the revision here that this one follows
branch_labels = None
depends_on = None


def execute(statement: str) -> None:
    """As it is: op.execute would take colons for parameters and, with --sql, double the percent signs."""
    if context.is_offline_mode():
        op.get_context().impl.static_output(statement + ";")
    else:
        op.get_bind().exec_driver_sql(statement, execution_options={{"no_parameters": True}})


def upgrade() -> None:
{calls(script.up)}


def downgrade() -> None:
{calls(script.down) or _no_way_back("    ")}
'''


def _django(script: Script) -> str:
    def listed(statements: Sequence[str]) -> str:
        return "\n".join(f"                {_raw(one)}," for one in _bare(statements))

    reverse = f"\n            reverse_sql=[\n{listed(script.down)}\n            ]," if script.down else ""
    return f'''"""{script.title}

{script.warning}
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = []  # put the app's migration here that this one follows: [("shop", "0007_orders")]

    operations = [
        migrations.RunSQL(
            sql=[
{listed(script.up)}
            ],{reverse}
        ),
    ]
'''


def _goose(script: Script) -> str:
    def body(statements: Sequence[str]) -> str:
        return "\n\n".join(
            f"-- +goose StatementBegin\n{one};\n-- +goose StatementEnd" for one in _bare(statements)
        )

    down = body(script.down) or "SELECT 'there is no way back from this version; restore a backup';"
    return (
        f"-- {script.title}\n-- +goose Up\n\n{body(script.up)}\n\n"
        f"-- +goose Down\n-- {script.warning}\n\n{down}\n"
    )


def _rails(script: Script) -> str:
    def body(statements: Sequence[str]) -> str:
        return "\n".join(
            f"    execute <<~'SQL'\n{indent(one, '      ')}\n    SQL" for one in _bare(statements)
        )

    down = body(script.down) or "    raise ActiveRecord::IrreversibleMigration"
    return f"""# {script.title}
# {script.warning}
# What is more than tables is not kept in schema.rb: set config.active_record.schema_format = :sql.
class SemelSchema{script.name.lstrip("0").capitalize()} < ActiveRecord::Migration[6.1]
  def up
{body(script.up)}
  end

  def down
{down}
  end
end
"""


def _bare(statements: Sequence[str]) -> list[str]:
    return [without_comments(statement) for statement in statements]


def _raw(text: str) -> str:
    """``text`` as a Python literal that people can read."""
    if '"""' in text or text.endswith(('"', "\\")):
        return repr(text)
    return f'r"""{text}"""'


def _no_way_back(margin: str) -> str:
    return f'{margin}raise NotImplementedError("there is no way back from this version; restore a backup")'


_WRITERS: Final[Mapping[Format, Callable[[Script], str]]] = MappingProxyType(
    {"alembic": _alembic, "django": _django, "goose": _goose, "rails": _rails}
)
