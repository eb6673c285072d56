"""Downloads a source distribution: fetch_sdist.py NAME VERSION SHA256 FOLDER

`pip download` would run the package's setup.py. The program uses internal
functions of the pip version that ./dev pins.
"""

import hashlib
import pathlib
import sys

from pip._internal.commands import create_command


def sdist_links(name, version):
    command = create_command("download")
    options, _ = command.parse_args(["--no-deps", "--no-binary", ":all:"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options=options, session=session)
        for candidate in finder.find_all_candidates(name):
            if str(candidate.version) == version:
                yield session, candidate.link


def main(name, version, sha256, folder):
    for session, link in sdist_links(name, version):
        response = session.get(link.url_without_fragment)
        response.raise_for_status()
        found = hashlib.sha256(response.content).hexdigest()
        if found != sha256:
            sys.exit(f"{link.filename}: sha256 is {found}, expected {sha256}")
        partial = pathlib.Path(folder, link.filename + ".partial")
        partial.write_bytes(response.content)
        partial.rename(pathlib.Path(folder, link.filename))
        return
    sys.exit(f"no source distribution of {name} {version} was found")


if __name__ == "__main__":
    main(*sys.argv[1:])
