"""What the device's document says of properties, counters, faults is what the code has."""

import pytest
import tables


@pytest.fixture(scope="module")
def source() -> dict[str, str]:
    return tables.source_tables()


@pytest.mark.parametrize("name", ["properties", "presets", "counters", "faults", "fault_keys"])
def test_table_is_current(source: dict[str, str], name: str) -> None:
    assert tables.document_tables()[name] == source[name], (
        "hw/rsd-nvme/README.md is out of date: python3 tests/docs/tables.py --write"
    )
