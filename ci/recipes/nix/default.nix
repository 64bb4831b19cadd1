# The command for Nix, built from the checkout that this file is in:
#   nix-build --expr 'with import <nixpkgs> { }; callPackage ./ci/recipes/nix { }'
{ lib, rustPlatform, installShellFiles }:

rustPlatform.buildRustPackage {
  pname = "ompd-inspect";
  version = "0.1.0";

  src = lib.cleanSource ../../..;
  cargoLock.lockFile = ../../../Cargo.lock;
  buildAndTestSubdir = "ompd-inspect";
  # They start programs under several compilers, runtimes and debuggers (README).
  doCheck = false;

  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    $out/bin/ompd-inspect manual manual
    installManPage manual/man1/*.1
    installShellCompletion --cmd ompd-inspect \
      --bash manual/completions/ompd-inspect.bash \
      --zsh manual/completions/_ompd-inspect \
      --fish manual/completions/ompd-inspect.fish
  '';

  meta = {
    description = "Explain hangs of OpenMP programs";
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "ompd-inspect";
    platforms = [ "x86_64-linux" ];
  };
}
