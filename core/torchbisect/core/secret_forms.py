"""Patterns of secrets: a secret is recognized by the name in front of it, by its place, or by its prefix.

In each pattern the first group is what stays. Every repetition is bounded or can't match in two ways, so that the time
of a search grows with the length of the text and not faster.
"""

from __future__ import annotations

import re

END = r"\s'\"<>`\\"
_HIDDEN = r"(?!\*{4})"
_QUOTE = r"\\?[\"']"

_NAME = (
    r"(?:[\w.-]{0,40}[_.-])?(?:token|secret|password|passwd|passphrase|pwd|signature|sig|api_?key|access_?key(?:_?id)?"
    r"|awsaccesskeyid|private_?key|key|auth|authorization|credentials?|session|jwt|sas)"
)
PARAMETER = re.compile(rf"([?&;#]{_NAME}=)(?!\*{{4}}(?:[&;#{END}]|$))[^&;#{END}]+", re.IGNORECASE)
_PARAMETER_ENCODED = re.compile(rf"((?:%3F|%26){_NAME}%3D)(?!\*{{4}})(?:(?!%26|%23)[^&;#{END}])+", re.IGNORECASE)

_PRIVATE_KEY = re.compile(
    r"()-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S])*(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_PUTTY_KEY = re.compile(r"(Private-Lines: \d{1,4}\s{1,4})(?:[A-Za-z0-9+/=]{16,}(?:\s{1,4}|\\n)?)+")
_AUTHORIZATION = re.compile(
    r"(\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest)\s{1,3})(?!\*{4})[^\s,;'\"\\]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b((?:bearer|basic) {1,3})(?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"(?<![A-Z0-9_])([A-Z][A-Z0-9_]{0,60}(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY)=['\"]?)"
    r"(?=[^\s\d'\"]{0,200}\d)(?=[^\sA-Za-z'\"]{0,200}[A-Za-z])[^\s'\"]{8,}"
)

# A password may be any text; a token or a key is told from the values of other things by its letters and digits.
_PASSWORDS = r"(?:password|passwd|passphrase|pwd|(?<!client[_-])secret)"
_KEYS = (
    r"(?:(?:api|access|account|auth|encryption|private|secret|shared|signing|subscription)[_-]?(?:access[_-]?)?key"
    r"|client[_-]?secret|credentials?|token)"
)
_LETTER_AND_DIGIT = rf"(?=[^{END}\d]{{0,200}}\d)(?=[^{END}A-Za-z]{{0,200}}[A-Za-z])"
# What follows an equals sign in a program may be a name, an attribute or a call.
_NO_PROGRAM = (
    r"(?![A-Za-z_]\w{0,100}(?:\.[A-Za-z_]\w{0,100}){1,20}(?:[^\w=+/-]|$))"
    r"(?![A-Za-z_][\w.]{0,200}[(\[])(?![a-z0-9]{0,60}_)"
)
_ASSIGN = rf"(?:{_QUOTE})?\]?\s{{0,3}}(?:=>?|:)\s{{0,3}}[bru]?"
_BARE = r"[^\s'\"`,;&()\[\]{}<>\\]"
_QUOTED_PASSWORD = re.compile(
    rf"({_PASSWORDS}{_ASSIGN}{_QUOTE}){_HIDDEN}(?![<{{$%])[^'\"\\\n<>{{}}]{{6,200}}(?=\\?['\"])", re.IGNORECASE
)
_QUOTED_KEY = re.compile(
    rf"({_KEYS}{_ASSIGN}{_QUOTE}){_HIDDEN}(?![<\[{{$%]){_LETTER_AND_DIGIT}[^{END}]{{8,}}", re.IGNORECASE
)
_BARE_PASSWORD = re.compile(
    rf"({_PASSWORDS}{_ASSIGN}){_HIDDEN}{_NO_PROGRAM}{_LETTER_AND_DIGIT}{_BARE}{{6,}}", re.IGNORECASE
)
_BARE_KEY = re.compile(rf"({_KEYS}{_ASSIGN}){_HIDDEN}{_NO_PROGRAM}{_LETTER_AND_DIGIT}{_BARE}{{16,}}", re.IGNORECASE)
_DOCKERFILE = re.compile(
    rf"(\b(?:ENV|ARG) [A-Z0-9_]{{0,60}}(?:TOKEN|SECRET|PASSWORD|PASSWD|_KEY) ){_HIDDEN}{_LETTER_AND_DIGIT}"
    rf"[^{END}]{{8,}}"
)
#: An option whose argument is a secret.
SECRET_OPTION = re.compile(rf"--?[\w-]{{0,40}}?(?:{_PASSWORDS}|{_KEYS})", re.IGNORECASE)
_OPTION = re.compile(
    rf"((?<![\w-])--?[\w-]{{0,40}}?(?:{_PASSWORDS}|{_KEYS})(?:=|\s{{1,4}}){_QUOTE}?){_HIDDEN}(?!-){_LETTER_AND_DIGIT}"
    rf"[^{END}]{{6,}}",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    rf"(\blogin\s{{1,20}}[^{END}]{{1,100}}\s{{1,20}}(?:account\s{{1,20}}[^{END}]{{1,100}}\s{{1,20}})?password\s{{1,20}})"
    rf"{_HIDDEN}[^{END}]+"
)
_LOGIN_COMMAND = re.compile(rf"(\blogin (?:--relogin )?){_HIDDEN}[0-9a-f]{{40}}\b")
_KEY_HEADER = re.compile(
    rf"(\b(?:x-[\w-]{{0,40}}(?:key|token|secret|auth)|(?:private|job|deploy)-token|api-?key|(?:proxy-)?authorization)"
    rf"(?:{_QUOTE})?\s{{0,3}}:\s{{0,3}}(?:{_QUOTE})?){_HIDDEN}(?=[^{END},;\d]{{0,200}}\d)[^{END},;]{{12,}}",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    rf"(\b(?:set-)?cookie(?:{_QUOTE})?\s{{0,3}}:\s{{0,3}}(?:{_QUOTE})?){_HIDDEN}"
    r"(?=[^=\s'\"\\]{1,100}=)[^'\"\\\r\n]{8,}",
    re.IGNORECASE,
)
_REGISTRY = re.compile(rf"({_QUOTE}(?:auth|identitytoken){_QUOTE}\s{{0,3}}:\s{{0,3}}{_QUOTE})[A-Za-z0-9+/=_.-]{{12,}}")
_CURL = re.compile(
    rf"(\s(?:-u|--user|--proxy-user)[ =]{_QUOTE}?[^{END}:]{{1,100}}:){_HIDDEN}(?!//){_LETTER_AND_DIGIT}[^{END}]{{6,}}"
)
# Without a scheme in front: HOST:PORT or HOST:PATH must follow. An image's digest isn't a host.
_USER = re.compile(
    rf"((?<![\w/@:.-])[A-Za-z][\w.-]{{1,60}}:){_HIDDEN}(?=[^{END}:@/\d]{{0,100}}\d)(?=[^{END}:@/A-Za-z]{{0,100}}[A-Za-z])"
    rf"[^{END}:@/()\[\]{{}},;]{{6,100}}(?=@(?!sha\d)[A-Za-z0-9-]{{1,60}}(?:\.[A-Za-z0-9-]{{1,60}}){{0,6}}:)"
)
_HOOK = re.compile(
    r"((?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}"
    r"|[\w.-]{1,80}\.webhook\.office\.com/webhookb2|chat\.googleapis\.com/v1/spaces/\w{1,40}/messages)/)"
    rf"{_HIDDEN}[^?&#{END}]{{8,}}"
)
_TOKENS = re.compile(
    r"()(?<![A-Za-z0-9])(?:"
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-[A-Za-z0-9_.-]{15,}"
    r"|pypi-(?:Ag[A-Za-z0-9_-]{14,}|[A-Za-z0-9_-]{50,})"
    r"|hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{30,}"
    r"|sk-(?=[a-z_-]{0,200}[A-Z0-9])[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"
    r"|npm_[A-Za-z0-9]{36}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"
    r"|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,}|SG\.[\w-]{16,32}\.[\w-]{16,64}"
    r"|nvapi-[A-Za-z0-9_-]{40,}|gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}"
    r"|hv[sbr]\.[A-Za-z0-9_-]{24,}|do[opr]_v1_[0-9a-f]{40,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
    r"|PMAK-[0-9a-f]{24}-[0-9a-f]{30,}|lin_api_[A-Za-z0-9]{30,}|ATATT3[A-Za-z0-9_=-]{40,}|dapi[0-9a-f]{32}(?:-\d)?"
    r"|\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
    r")"
)
# The prefixes that are in no word: these are recognized inside of a longer name too.
_TOKENS_IN_WORDS = re.compile(r"()(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,}|hf_[A-Za-z0-9]{34})")

_PASSWORD_WORDS = ("passw", "passphrase", "pwd", "secret")
_KEY_WORDS = ("key", "token", "secret", "credential")
_HOOK_WORDS = ("hooks.slack.com", "/webhooks/", "webhook.office.com", "chat.googleapis.com")
#: In the order in which they are looked for, each with words in lower case: without any of them it can't match.
#: Each keeps its first group.
PATTERNS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("private key",), _PRIVATE_KEY),
    (("private-lines",), _PUTTY_KEY),
    (("=",), PARAMETER),
    (("authorization",), _AUTHORIZATION),
    (("bearer ", "basic "), _BEARER),
    (("=",), _ASSIGNED),
    (_PASSWORD_WORDS, _QUOTED_PASSWORD),
    (_KEY_WORDS, _QUOTED_KEY),
    (_PASSWORD_WORDS, _BARE_PASSWORD),
    (_KEY_WORDS, _BARE_KEY),
    (("env ", "arg "), _DOCKERFILE),
    ((*_PASSWORD_WORDS, *_KEY_WORDS), _OPTION),
    (("login",), _LOGIN),
    (("login",), _LOGIN_COMMAND),
    (("x-", "-token", "api-key", "apikey", "authorization"), _KEY_HEADER),
    (("cookie",), _COOKIE),
    (("auth", "identitytoken"), _REGISTRY),
    (("-u", "--user", "--proxy-user"), _CURL),
    (("@",), _USER),
    (_HOOK_WORDS, _HOOK),
    (("",), _TOKENS),
    (("gh", "hf_"), _TOKENS_IN_WORDS),
)
#: For text with percent signs only.
ENCODED_PATTERNS = (_PARAMETER_ENCODED,)
