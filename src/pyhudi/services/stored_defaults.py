"""What a table may store as the defaults of its writes: nothing with which each of them would be refused."""

from collections.abc import Mapping

from pyhudi.services.after_commit import AfterCommitSettings
from pyhudi.services.metadata.indexes import refuse_absent
from pyhudi.table.facts.bucket_facts import facts_of_table
from pyhudi.table.facts.config import TableConfig
from pyhudi.write.input.source import Operation
from pyhudi.write.place.non_blocking import refuse_unfit_for_non_blocking
from pyhudi.write.settings import WriteSettings


def check_defaults(config: TableConfig, options: Mapping[str, str]) -> WriteSettings:
    """The settings of a write by options that a table shall store. Checked as an upsert into it checks them.

    `config`: of the table with those options. `options`: they, and what a handle was opened with. No request.
    Raises: Invalid for an impossible value, for an index without the one that it needs, and for options that contradict
    the table; Unsupported for what a table of this version cannot have.
    """
    AfterCommitSettings.from_options(options)
    settings = WriteSettings.from_options(options)
    refuse_absent(config, settings)
    refuse_unfit_for_non_blocking(config, facts_of_table(config, settings.bucket_options), Operation.UPSERT, settings)
    return settings
