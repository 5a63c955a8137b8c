"""The LibreTranslate API works with the official LibreTranslate client."""

import errno
import json
import os
import threading
import time
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

import seqloom
from seqloom.inference.engine.translator import CTranslate2Engine
from seqloom.serving.api import documents, libretranslate
from seqloom.serving.api.languages.codes import match_language
from seqloom.serving.api.languages.detection import detect_common_language, detect_languages
from seqloom.serving.api.libretranslate import LibreTranslateRequest, translate_n_best
from seqloom.serving.api.schemas.predictions import TranslateRequest
from seqloom.serving.api.translation import translate
from seqloom.serving.errors import ApiError
from seqloom.serving.http.stack import HeadMiddleware
from seqloom.serving.server import translated_files
from seqloom.serving.server.admission import AdmissionControl
from seqloom.serving.server.app import build_app
from seqloom.serving.server.batcher import Batcher
from seqloom.serving.server.catalogue import load_catalogue
from seqloom.serving.server.limits import Limits
from seqloom.serving.server.service import Service
from seqloom.serving.server.translated_files import (
    TranslatedFile,
    TranslatedFiles,
    temporary_folder,
)
from support.async_runner import run_async
from support.in_process_server import NO_RUNS, respond
from support.server_process import KEY, ServerProcess, start_server
from support.tiny_runs import TRANSFORMER, tiny_config

pytestmark = pytest.mark.slow


def status_and_message(caught: pytest.ExceptionInfo[HTTPError]) -> tuple[int, str]:
    with caught.value as error:
        return error.code, json.loads(error.read())["error"]


def test_the_official_client_translates_and_lists_languages(server: ServerProcess) -> None:
    client = LibreTranslateAPI(server.url)
    expected = server.post_json("/api/translate", texts=["dog runs"], source="en", target="fr")
    assert client.translate("dog runs", "en", "fr") == expected["translations"][0]["text"]
    languages = {language["code"]: language for language in client.languages()}
    assert languages["en"] == {"code": "en", "name": "English", "targets": ["de", "fr"]}
    assert languages["fr"]["targets"] == []
    assert languages["la"]["name"] == "Latin"


def test_the_official_client_gets_error_messages(server: ServerProcess) -> None:
    client = LibreTranslateAPI(server.url)
    with pytest.raises(HTTPError) as caught:
        client.translate("dog", "en", "xx")
    assert status_and_message(caught) == (
        400,
        "target: xx is not supported; available languages: de, en, fr, it, la",
    )
    with pytest.raises(HTTPError) as caught:
        client.translate("dog", "fr", "de")
    status, message = status_and_message(caught)
    assert status == 400
    assert "no run translates from fr to de" in message
    with pytest.raises(HTTPError) as caught:
        client.translate("", "en", "de")
    assert status_and_message(caught) == (
        400,
        "q: contains only white space; send some text",
    )


@pytest.mark.parametrize("form", [False, True])
def test_alternatives_and_lists(server: ServerProcess, form: bool) -> None:
    request: dict[str, Any] = {"q": "abcd", "source": "la", "target": "it", "alternatives": 2}
    body: dict[str, Any] = {"data": request} if form else {"json": request}
    response = server.client.post(f"{server.url}/translate", **body).json()
    assert isinstance(response["translatedText"], str)
    assert 1 <= len(response["alternatives"]) <= 2
    assert response["translatedText"] not in response["alternatives"]
    listed = server.post_json("/translate", q=["abcd", "dc"], source="la", target="it")
    assert listed["translatedText"][0] == response["translatedText"]
    assert len(listed["translatedText"]) == 2
    assert "alternatives" not in listed


def test_forms_may_contain_escaped_and_unescaped_utf_8(server: ServerProcess) -> None:
    """`curl -d` sends letters unescaped; the standard escapes them."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    def post(body: bytes) -> tuple[int, Any]:
        response = server.client.post(f"{server.url}/translate", content=body, headers=form)
        return response.status_code, response.json()

    expected = server.post_json("/translate", q="gefällt", source="la", target="it")
    assert post("q=gefällt&source=la&target=it".encode()) == (200, expected)
    assert post(b"q=gef%C3%A4llt&source=la&target=it") == (200, expected)
    for latin_1 in (b"q=gef\xe4llt&source=la&target=it", b"q=gef%E4llt&source=la&target=it"):
        status, body = post(latin_1)
        assert status == 400
        assert "the form is not valid UTF-8" in body["error"]


def test_detection_needs_a_run_with_labels_for_all_source_languages(server: ServerProcess) -> None:
    """The labelling run of this server has no label for Latin."""
    for path in ("/translate", "/detect"):
        status, _, message = server.post_error(path, q="hund", source="auto", target="fr")
        assert status == 400
        assert "cannot detect languages" in message
        assert "de, en, la" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"q": "a", "source": "la"}, "target: this field is required"),
        ({"source": "la", "target": "it"}, "q: this field is required"),
        ({"q": 5, "source": "la", "target": "it"}, "q: "),
        ({"q": "a", "source": "la", "target": "it", "format": "pdf"}, "format: 'pdf' is unknown"),
        (
            {"q": "a", "source": "la", "target": "it", "alternatives": 9},
            "alternatives: 9 is too large; the limit is 5",
        ),
        ({"q": [" "], "source": "la", "target": "it"}, "q: contains only white space"),
        ({"q": "\ud800", "source": "la", "target": "it"}, "surrogate"),
    ],
)
def test_invalid_requests_get_400(
    server: ServerProcess, content: dict[str, Any], words: str
) -> None:
    body = json.dumps(content)
    response = server.client.post(
        f"{server.url}/translate", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 400
    assert words in response.json()["error"]


def test_settings_for_the_libretranslate_page(server: ServerProcess) -> None:
    settings = server.get("/frontend/settings").json()
    assert settings["charLimit"] == 5000
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "la", "name": "Latin"}


def test_an_api_key_is_required_and_checked(runs: dict[str, Path], keys: Path) -> None:
    server = start_server([runs["polyglot"], runs["labeller"]], "--keys", str(keys))
    try:
        with pytest.raises(HTTPError) as caught:
            LibreTranslateAPI(server.url).translate("dog", "en", "de")
        assert status_and_message(caught)[0] == 403
        with pytest.raises(HTTPError) as caught:
            LibreTranslateAPI(server.url, "open barley").translate("dog", "en", "de")
        assert status_and_message(caught)[0] == 403
        client = LibreTranslateAPI(server.url, KEY)
        assert isinstance(client.translate("dog", "en", "de"), str)
        assert {one["language"] for one in client.detect("hund mann")} == {"de", "en"}
        detected = server.client.post(
            f"{server.url}/translate",
            json={"q": "hund mann katze", "source": "auto", "target": "fr", "api_key": KEY},
        ).json()
        assert detected["detectedLanguage"]["language"] == "de"
        assert detected["detectedLanguage"]["confidence"] > 50

        request = {"texts": ["dog"], "target": "de"}
        response = server.post("/api/translate", **request)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        for key, status in (("open barley", 403), (KEY, 200)):
            headers = {"Authorization": f"Bearer {key}"}
            response = server.client.post(
                f"{server.url}/api/translate", json=request, headers=headers
            )
            assert response.status_code == status
        assert server.get("/api/runs").status_code == 200
        assert server.get("/frontend/settings").json()["keyRequired"] is True
    finally:
        assert server.stop() == 0


def test_libretranslate_requests_compute_no_probabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CTranslate2 would have to score every output in a second pass."""
    greedy = "decoding={kind='greedy'}"
    seqloom.train(tiny_config(*TRANSFORMER, "training.steps=4", greedy), tmp_path / "run")
    catalogue = load_catalogue([tmp_path / "run"], None, ["run=la:it"], Batcher)
    service = Service(catalogue, Limits(), AdmissionControl(Limits()), stored_files(tmp_path))
    request = LibreTranslateRequest(q="abc", source="la", target="it")
    with_scores = TranslateRequest(texts=["abc"])
    expected = run_async(translate(service, with_scores)).translations[0].text

    def fail(*arguments: object) -> None:
        raise AssertionError("scored")

    monkeypatch.setattr(CTranslate2Engine, "score", fail)
    assert run_async(translate_n_best(service, request, ["abc"], "la")) == [[expected]]
    with pytest.raises(AssertionError, match="scored"):
        run_async(translate(service, with_scores))
    catalogue.close()


def stored_files(folder: Path) -> TranslatedFiles:
    return TranslatedFiles(folder, Limits().files, Limits().file_seconds)


def upload(server: ServerProcess, name: str, content: bytes, **fields: str) -> httpx.Response:
    form = {"source": "en", "target": "fr", **fields}
    return server.client.post(
        f"{server.url}/translate_file", data=form, files={"file": (name, content)}
    )


def test_a_document_is_translated_and_downloaded_once(server: ServerProcess) -> None:
    content = b"<p>dog runs</p><p><b>cat</b></p>"
    expected = server.post_json(
        "/api/translate", texts=["dog runs", "cat"], source="en", target="fr"
    )
    first, second = (translation["text"] for translation in expected["translations"])
    response = upload(server, "../../etc/a b.html", content)
    assert response.status_code == 200, response.text
    url = response.json()["translatedFileUrl"]
    assert url.startswith(f"{server.url}/download_file/")
    file = server.client.get(url)
    assert file.text == f"<p>{first}</p><p><b>{second}</b></p>"
    assert file.headers["content-type"] == "application/octet-stream"
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b_fr.html"
    assert server.client.get(url).status_code == 404
    assert server.get("/download_file/..%2f..%2fetc%2fpasswd").status_code == 404
    assert ".srt" in server.get("/frontend/settings").json()["supportedFilesFormat"]


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("a.pdf", b"dog", {}, "file: the name must end in .txt"),
        ("a.txt", b"\xff", {}, "a.txt:1: byte 0xff is not valid UTF-8"),
        ("a.srt", b"dog\n", {}, "a.srt"),
        ("a.html", b"&#" + b"9" * 5000, {}, "a.html:1: the character reference"),
        ("a.txt", b"dog", {"target": "xx"}, "target: xx is not supported"),
        ("a.txt", b"dog", {"target": ""}, "target: this field is required"),
        ("a.txt", b" \n", {"source": "auto"}, "file: contains no text, so its language cannot"),
    ],
)
def test_unusable_documents_get_400(
    server: ServerProcess, name: str, content: bytes, fields: dict[str, str], message: str
) -> None:
    response = upload(server, name, content, **fields)
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_a_document_needs_a_form_and_a_limited_size(server: ServerProcess) -> None:
    assert server.post("/translate_file", q="dog").status_code == 415
    assert upload(server, "a.txt", b"dog " * 100_000).status_code == 413


def test_waiting_files_are_limited_in_number_and_time(tmp_path: Path) -> None:
    files, other = (TranslatedFiles(tmp_path, 2, 1000.0) for _ in range(2))
    first, second = files.add("a", b"1"), other.add("b", b"2")
    assert first != second
    with pytest.raises(ApiError, match="2 translated files wait") as caught:
        files.add("c", b"3")
    assert caught.value.status == 503
    expired = time.time() - 1000.0
    os.utime(tmp_path / first, (expired, expired))
    assert files.take(first) is None
    third = files.add("c\n\ud800", b"3\n")
    assert other.take(third) == TranslatedFile("c\n\ud800", b"3\n")
    assert files.take(third) is None


@pytest.mark.parametrize("token", ["", ".", "..", ".lock", "../secret", "a" * 32, "\0" * 32])
def test_other_strings_than_tokens_are_no_files(tmp_path: Path, token: str) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (tmp_path / "files").mkdir()
    files = TranslatedFiles(tmp_path / "files", 2, 1000.0)
    files.add("a", b"1")
    assert files.take(token) is None


def test_a_file_is_downloaded_once_even_from_several_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = TranslatedFiles(tmp_path, 2, 1000.0)
    token = files.add("a", b"1")
    get = TranslatedFiles.get

    def get_at_the_same_time(self: TranslatedFiles, token: str) -> TranslatedFile | None:
        file = get(self, token)
        (tmp_path / token).unlink()  # another worker sends the file
        return file

    monkeypatch.setattr(TranslatedFiles, "get", get_at_the_same_time)
    assert files.take(token) is None


def test_only_this_user_can_read_the_folder_of_translated_files() -> None:
    with temporary_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        TranslatedFiles(folder, 2, 1000.0).add("a", b"1")
    assert not folder.exists()


def test_the_folders_of_servers_that_were_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translated_files, "SHARED_MEMORY", str(tmp_path))
    abandoned, new = tmp_path / "seqloom-files-1", tmp_path / "seqloom-files-2"
    for folder in (abandoned, new):
        folder.mkdir()
        (folder / "token").touch()
    with temporary_folder() as running:
        for folder in (abandoned, running):
            os.utime(folder, (0, 0))
        with temporary_folder():
            assert sorted(tmp_path.glob("seqloom-files-?")) == [new]
            assert running.exists()
    assert list(tmp_path.iterdir()) == [new]


def test_a_removed_folder_is_created_again_for_this_user_only(tmp_path: Path) -> None:
    files = TranslatedFiles(tmp_path / "files", 2, 1000.0)
    token = files.add("a", b"1")
    assert files.folder.stat().st_mode & 0o777 == 0o700
    assert files.take(token) == TranslatedFile("a", b"1")


def test_a_full_disk_is_a_503_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = TranslatedFiles(tmp_path, 2, 1000.0)

    def fail(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fail)
        with pytest.raises(ApiError, match="there is no space") as caught:
            files.add("a", b"1")
    assert caught.value.status == 503
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_head_request_does_not_remove_the_file(tmp_path: Path) -> None:
    service = Service(NO_RUNS, Limits(), AdmissionControl(Limits()), stored_files(tmp_path))
    url = f"/download_file/{service.files.add('a.txt', b'dog')}"
    app = HeadMiddleware(build_app(service))

    async def send() -> tuple[list[httpx.Response], list[httpx.Response]]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            heads = [await client.head(url), await client.head(url)]
            return heads, [await client.get(url), await client.get(url), await client.head(url)]

    heads, (first, *later) = run_async(send())
    for head in heads:
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers == first.headers
    assert (first.status_code, first.content) == (200, b"dog")
    assert [response.status_code for response in later] == [404, 404]


def test_documents_are_parsed_in_another_thread_within_the_only_admission_of_their_request(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsing, language detection and translation share the admission."""
    limits = Limits(in_flight=1, queue_seconds=0.1)
    service = Service(
        load_catalogue([runs["polyglot"], runs["labeller"]], None, [], Batcher),
        limits,
        AdmissionControl(limits),
        stored_files(tmp_path),
    )
    admissions: list[float] = []
    event_loop_threads: list[int] = []
    parsing_threads: list[int] = []
    running: list[int] = []
    service.admission.on_admitted = admissions.append

    def observe(module: ModuleType, name: str) -> None:
        original = getattr(module, name)

        def parse(*arguments: Any) -> Any:
            parsing_threads.append(threading.get_ident())
            running.append(service.admission.in_flight)
            return original(*arguments)

        monkeypatch.setattr(module, name, parse)

    observe(documents, "read_document")
    observe(libretranslate, "html_parts")
    fields = {"source": "auto", "target": "fr"}

    async def send() -> list[httpx.Response]:
        event_loop_threads.append(threading.get_ident())
        transport = httpx.ASGITransport(app=build_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            file = {"file": ("a.html", b"<p>hund mann</p>")}
            return [
                await client.post("/translate_file", data=fields, files=file),
                await client.post(
                    "/translate", json={"q": "<p>hund mann</p>", "format": "html", **fields}
                ),
            ]

    responses = run_async(send())
    assert [response.status_code for response in responses] == [200, 200], responses[0].text
    assert running == [1, 1]
    assert not set(parsing_threads) & set(event_loop_threads)
    assert len(admissions) == 2
    assert service.admission.in_flight == 0
    service.catalogue.close()


LATIN: dict[str, Any] = {"source": "la", "target": "it"}


@pytest.mark.parametrize(
    ("code", "served", "found"),
    [
        ("en", ["en", "en-GB"], "en"),
        ("EN", ["de", "en"], "en"),
        ("en-US", ["en"], "en"),
        ("EN_us", ["en"], "en"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt-br", ["pt-BR", "pt-PT"], "pt-BR"),
        ("pt", ["pt-BR", "pt-PT"], None),
        ("pt-AO", ["pt-BR"], None),
        ("e", ["en"], None),
        ("", ["en"], None),
        ("english", ["en"], None),
    ],
)
def test_codes_match_in_any_case_and_with_regions(
    code: str, served: list[str], found: str | None
) -> None:
    assert match_language(code, served) == found


def test_requests_may_use_other_spellings_of_codes(server: ServerProcess) -> None:
    expected = server.post_json("/translate", q="abcd", **LATIN)
    assert server.post_json("/translate", q="abcd", source="LA", target="it-IT") == expected


def test_html_keeps_its_structure(server: ServerProcess) -> None:
    html = '<p class="x">abcd<br/>\n <b>dc &amp; b</b><!-- abcd --> <code>abcd</code></p>'
    first, second = server.post_json("/translate", q=["abcd", "dc & b"], **LATIN)["translatedText"]
    expected = (
        f'<p class="x">{escape(first, quote=False)}<br/>\n <b>{escape(second, quote=False)}</b>'
        "<!-- abcd --> <code>abcd</code></p>"
    )
    assert server.post_json("/translate", q=html, format="html", **LATIN) == {
        "translatedText": expected
    }
    listed = server.post_json("/translate", q=[html, "<hr>"], format="html", **LATIN)
    assert listed["translatedText"] == [expected, "<hr>"]


def test_html_has_alternatives_and_may_have_many_parts(server: ServerProcess) -> None:
    html = "<p>ab</p>" * 70
    response = server.post_json("/translate", q=html, format="html", alternatives=1, **LATIN)
    for text in (response["translatedText"], *response["alternatives"]):
        assert (text.count("<p>"), text.count("</p>")) == (70, 70)
    assert response["translatedText"] != response["alternatives"][0]


def test_invalid_html_gets_400(server: ServerProcess) -> None:
    response = server.post("/translate", q="<p>" + "&#" + "9" * 4500, format="html", **LATIN)
    assert response.status_code == 400
    assert "q:1: the character reference" in response.json()["error"]


def test_fields_may_be_in_the_query_string(server: ServerProcess) -> None:
    expected = server.post_json("/translate", q="abcd", **LATIN)
    url = f"{server.url}/translate"
    query = {"q": "abcd", **LATIN}
    assert server.client.post(url, params=query).json() == expected
    assert server.client.post(url, params=LATIN, data={"q": "abcd"}).json() == expected
    assert (
        server.client.post(url, params={**query, "q": "b"}, json={"q": "abcd"}).json() == expected
    )
    assert server.client.post(url).status_code == 415


def test_a_repeated_field_is_a_list(server: ServerProcess) -> None:
    response = server.client.post(f"{server.url}/translate", data={"q": ["abcd", "dc"], **LATIN})
    assert response.json() == server.post_json("/translate", q=["abcd", "dc"], **LATIN)


def test_suggestions_are_refused(server: ServerProcess) -> None:
    fields = {"q": "a", "s": "b", "source": "la", "target": "it"}
    status, _, message = server.post_error("/suggest", **fields)
    assert (status, message) == (403, "this server does not accept suggestions")


def test_the_spec_is_the_openapi_description(server: ServerProcess) -> None:
    assert server.get("/spec").json() == server.get("/openapi.json").json()


def detecting_service(runs: dict[str, Path], folder: Path) -> Service:
    folders = [runs["polyglot"], runs["labeller"]]
    catalogue = load_catalogue(folders, None, [], Batcher)
    return Service(catalogue, Limits(), AdmissionControl(Limits()), stored_files(folder))


def test_detection_of_one_and_of_several_texts(runs: dict[str, Path], tmp_path: Path) -> None:
    service = detecting_service(runs, tmp_path)
    found = run_async(detect_languages(service, ["hund mann katze", "dog cat man"]))
    assert [languages[0].language for languages in found] == ["de", "en"]
    assert [len(languages) for languages in found] == [2, 2]
    common = run_async(detect_common_language(service, ["hund mann katze", " "]))
    assert common.language == "de"
    with pytest.raises(ApiError, match="several languages"):
        run_async(detect_common_language(service, ["hund mann katze", "dog cat man"]))
    service.catalogue.close()


def test_lists_can_be_detected(runs: dict[str, Path], tmp_path: Path) -> None:
    service = detecting_service(runs, tmp_path)
    catalogue = service.catalogue
    one = respond("POST", "/detect", catalogue=catalogue, json={"q": "hund mann"}).json()
    several = respond("POST", "/detect", catalogue=catalogue, json={"q": ["hund mann"] * 2}).json()
    assert several == [one, one]
    catalogue.close()
