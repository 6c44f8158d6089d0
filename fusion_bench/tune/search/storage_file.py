"""The file of an SQLite storage, checked before the search begins."""

from __future__ import annotations

from fusion_bench.errors import ConfigError
from fusion_bench.tune.search.database_address import find_database_file, show_address
from fusion_bench.util.files.regular_files import check_regular
from fusion_bench.util.os_errors import explain_error


def check_storage_file(option: str, url: str | None) -> None:
    """Refuse the address of an SQLite file that cannot be one; SQLite does not say why.

    Args:
        option: The option that names it.
        url: The address; other databases and None pass.

    Raises:
        ConfigError: A folder, a named pipe, a socket or a device bears its name, its folder is not
            there, or no file can have the name.
    """
    path = None if url is None else find_database_file(url)
    if url is None or path is None:
        return
    try:
        check_regular(path)
        if path.is_dir():
            problem = "a folder, and a file is needed"
        elif not path.parent.is_dir():
            problem = f"there is no folder {path.parent}: make it"
        else:
            return
    except (OSError, ValueError) as error:
        problem = explain_error(error)
    raise ConfigError(f"{option} {show_address(url)}: {problem}")
