# The command for Spack, built from the checkout that this file is in:
#   spack repo add ci/recipes/spack
#   spack install ompd-inspect
from pathlib import Path

from spack.package import *


class OmpdInspect(Package):
    """Explain hangs of OpenMP programs: what each thread, team and task does, and what waits for what."""

    # The last commit; what is not committed is left out.
    git = Path(__file__).resolve().parents[5].as_uri()

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")

    def install(self, spec, prefix):
        cargo = which("cargo")
        cargo("install", "--locked", "--no-track", "--path", "ompd-inspect", "--root", str(prefix))
        Executable(str(prefix.bin.join("ompd-inspect")))("manual", "manual")
        install_tree("manual/man1", str(prefix.share.man.man1))
        completions = Path("manual") / "completions"
        for file, folder, name in (
            ("ompd-inspect.bash", prefix.share.join("bash-completion/completions"), "ompd-inspect"),
            ("_ompd-inspect", prefix.share.join("zsh/site-functions"), "_ompd-inspect"),
            ("ompd-inspect.fish", prefix.share.join("fish/vendor_completions.d"), "ompd-inspect.fish"),
        ):
            mkdirp(str(folder))
            install(str(completions / file), f"{folder}/{name}")
