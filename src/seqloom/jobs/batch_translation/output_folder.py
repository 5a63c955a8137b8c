"""The output folder of a batch translation, which stores finished blocks and joins them into files.

    OUTPUT/translation.json        the request: run, input files, options, engine
    OUTPUT/.blocks/NAME/00000012   the outputs of block 12 of the input file NAME
    OUTPUT/NAME                    the complete output of the input file NAME

A block is written under a temporary name and renamed, so it is either complete or absent. The
process that finishes the last block of a file joins the blocks and removes them. Several processes
on several machines can write to the folder without locks: if two of them write the same block or
join the same file, they write the same bytes, and the rename is atomic.
"""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import atomic_file, make_folder, storage_errors, sync
from seqloom.jobs.batch_translation.input_files import InputFile
from seqloom.jobs.batch_translation.joining import join_blocks
from seqloom.jobs.batch_translation.request import TranslationRequest, request_differences

RECORD = "translation.json"
BLOCKS = ".blocks"


@dataclass(frozen=True)
class OutputFolder:
    path: Path

    def prepare(
        self, files: Sequence[InputFile], request: TranslationRequest, *, overwrite: bool
    ) -> None:
        """Create the folder and store the request: run, input files, options and engine.

        If the folder already contains a request, check that it equals `request`. The translation
        is then continued.

        overwrite: if True, remove the outputs of an earlier command first

        Raises a ConfigError
        - if the folder contains a different request,
        - if the folder contains no request, but files with the names of the outputs, or
        - if an output would replace its input file, or has a name that the folder reserves.
        """
        problems = [
            f"{file.path}: the output would replace this input file. Choose another folder for --output."
            for file in files
            if (self.path / file.name).absolute() == file.path.absolute()
        ]
        problems += [
            f"{file.path}: this name is reserved in the output folder. Rename the file."
            for file in files
            if file.name in (RECORD, BLOCKS)
        ]
        if problems:
            raise ConfigError("\n".join(problems))
        if overwrite:
            self._clear(files)
        stored = self.read_request()
        if stored is not None:
            self._check_request(stored, request)
            return
        existing = [file.name for file in files if (self.path / file.name).exists()]
        if existing:
            raise ConfigError(
                f"--output {self.path}: the folder already contains output files: "
                f"{', '.join(existing[:5])}. Add --overwrite to replace them, or choose another "
                "folder."
            )
        with storage_errors(self.path):
            make_folder(self.path)
        with atomic_file(self.path / RECORD) as temporary:
            temporary.write_text(json.dumps(request, indent=1, ensure_ascii=False), "utf-8")

    def read_request(self) -> TranslationRequest | None:
        """Return the request (run, input files, options) of the command that created the folder.

        Return None if the folder contains no request.
        """
        try:
            return cast(TranslationRequest, json.loads((self.path / RECORD).read_bytes()))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StorageError(
                f"{self.path / RECORD}: is damaged ({error}). Add --overwrite to start again."
            ) from error

    def _check_request(self, stored: TranslationRequest, request: TranslationRequest) -> None:
        if different := request_differences(stored, json.loads(json.dumps(request))):
            raise ConfigError(
                f"--output {self.path}: this command and the earlier command that wrote to this "
                f"folder differ in {' and '.join(different)}. To continue the earlier command, "
                "repeat it unchanged. To start again, add --overwrite, or choose another folder."
            )

    def _clear(self, files: Sequence[InputFile]) -> None:
        """Remove the results of an earlier command from the output folder.

        These are all blocks, the outputs of `files`, and the file with the command's request. The
        request is removed last, so it is still there if this method is interrupted. A command with
        a different request then raises an error instead of using the remaining blocks.
        """
        with storage_errors(self.path):
            if (self.path / BLOCKS).exists():
                shutil.rmtree(self.path / BLOCKS)
            for file in files:
                (self.path / file.name).unlink(missing_ok=True)
            (self.path / RECORD).unlink(missing_ok=True)

    def output_path(self, file: InputFile) -> Path:
        return self.path / file.name

    def block_path(self, file: InputFile, index: int) -> Path:
        return self.path / BLOCKS / file.name / f"{index:08d}"

    def finished_blocks(self, file: InputFile) -> set[int]:
        """Return the indices of the blocks that are finished."""
        try:
            names = os.listdir(self.path / BLOCKS / file.name)
        except FileNotFoundError:
            return set()
        return {int(name) for name in names if name.isdigit()}

    def write_block(self, file: InputFile, index: int, lines: Sequence[str]) -> None:
        path = self.block_path(file, index)
        try:
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as temporary:
                temporary.write_bytes("".join(f"{line}\n" for line in lines).encode())
        except StorageError:
            # Another process has written the same block, joined the file and removed its blocks.
            if not self.output_path(file).exists():
                raise

    def join(self, file: InputFile, count: int, request: TranslationRequest) -> bool:
        """Join the blocks of a file if all `count` blocks are finished.

        Returns True if the output is complete. Raises a StorageError if the input file has changed
        since the translation started, or if a command with other options has meanwhile replaced the
        request in the folder.
        """
        output = self.output_path(file)
        if output.exists():
            return True
        if len(self.finished_blocks(file)) < count:
            return output.exists()  # another process may have joined and removed the blocks
        if not file.is_unchanged:
            raise StorageError(
                f"{file.path}: was changed while it was translated. Add --overwrite to start again."
            )
        if not self._has_request(request):
            raise StorageError(
                f"{self.path}: another command with other options is writing to this folder. "
                "Choose another folder, or add --overwrite to start again."
            )
        blocks = [self.block_path(file, index) for index in range(count)]
        folder = self.path / BLOCKS / file.name
        try:
            with storage_errors(output):
                folder.mkdir(parents=True, exist_ok=True)  # a file without lines has no blocks
                with atomic_file(folder / "joined") as temporary:
                    join_blocks(file, blocks, temporary)
                os.replace(folder / "joined", output)
        except StorageError:
            # Another process has joined the same file and removed its blocks.
            if not output.exists():
                raise
        self._remove_blocks(folder)
        return True

    def remove_blocks(self, files: Sequence[InputFile], request: TranslationRequest) -> None:
        """Remove the remaining blocks of `files`. Call this when their outputs are complete.

        Blocks remain if an earlier process was killed after it had joined a file. If a command with
        other options has meanwhile replaced the request in the folder, its blocks are kept.
        """
        if not self._has_request(request):
            return
        for file in files:
            folder = self.path / BLOCKS / file.name
            if folder.exists() and self.output_path(file).exists():
                self._remove_blocks(folder)
        with suppress(OSError):
            (self.path / BLOCKS).rmdir()

    def _has_request(self, request: TranslationRequest) -> bool:
        """Return True if the folder contains this request."""
        stored = self.read_request()
        return stored is not None and not request_differences(
            stored, json.loads(json.dumps(request))
        )

    def _remove_blocks(self, folder: Path) -> None:
        # Without the sync, a power failure could lose an output after its blocks are gone.
        with storage_errors(self.path):
            sync(self.path)
        shutil.rmtree(folder, ignore_errors=True)
