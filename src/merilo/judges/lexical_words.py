"""Small word tables of the lexical judge: question words, cues of an answer, irregular forms, refusals."""

from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


ASKS: Final = {
    "who": _set("""
        who whom whose кто кого кому кем чей чья чьи quién quien quiénes wer wen wem cine kim kimin
        ai ποιος ποιον ποιοι من कौन किसने किसके
    """),
    "when": _set("""
        when когда cuándo cuando wann când cand πότε ποτε متى कब zaman
    """),
    "where": _set("""
        where где куда откуда dónde donde adónde wo wohin woher unde nerede nereye nereden đâu πού
        που أين कहाँ कहां
    """),
    "count": _set("""
        many much long old far сколько cuántos cuántas cuánto cuánta wieviel wieviele viele câți
        câte cât câtă kaç πόσα πόσοι πόσες πόσο πόση كم कितने कितनी कितना
    """),
    "why": _set("""
        why почему зачем отчего porqué warum wieso weshalb neden niçin γιατί لماذا क्यों
    """),
}
"""Question words by the kind of answer they ask for; compared with whole lower-cased words."""

ASKS_UNSPACED: Final = {
    "who": ("谁", "誰", "ใคร"),
    "when": ("何时", "什么时候", "哪一年", "哪年", "いつ", "เมื่อใด", "เมื่อไหร่", "เมื่อไร", "khi nào"),
    "where": ("哪里", "何处", "哪儿", "在哪", "どこ", "ที่ไหน", "ที่ใด", "ở đâu"),
    "count": ("多少", "几", "いくつ", "何人", "เท่าใด", "เท่าไหร่", "เท่าไร", "กี่", "bao nhiêu"),
    "why": ("为什么", "为何", "なぜ", "ทำไม", "เพราะเหตุใด", "tại sao", "vì sao"),
}
"""The same as parts of a text, for scripts without spaces and question words of several syllables."""

NEEDS_HOW: Final = _set("""
    many much long old far
""")
""""how" opens a counting question only before one of these, never alone."""

_WH_FITTED: Final = _set("""
    what which who whom whose when where why how что какой какая какое какие каков кто где когда почему сколько как
    зачем чем
""")
OPENS_QUESTION: Final = _WH_FITTED | _set("is are was were do does did can could will would should has have ли")
"""A text that begins with one of these reads as a question."""

WH_WORDS: Final = _WH_FITTED | _set("""
    wer wen wem welche welcher welches wann wo warum wie qué quién cuál cuándo dónde cuánto cómo quand où combien
    comment pourquoi quel quelle quels quelles
""")
"""A question that begins with one of these cannot be answered by yes or no. German "was" is left out: it is an English
verb too."""
BEFORE_WH: Final = _set("""
    in at on by for to from with of since until about under в на с о к у по до для из при über um mit von an en de a
    desde
""")
"""What may stand before one of them."""

QUESTION_WORDS: Final = OPENS_QUESTION | NEEDS_HOW | frozenset[str]().union(*ASKS.values())

DATE_WORDS: Final = _set("""
    january february march april may june july august september october november december century
    year decade monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря году год века
    веке
""")

CAUSE_WORDS: Final = _set("""
    because due since therefore thus reason reasons cause caused causes so order result потому
    поскольку из-за вследствие поэтому причина причиной причины так
""")

NEGATIONS: Final = _set("""
    not no never none neither nor without cannot nobody nothing n't не нет ни без никогда никто
    ничего нельзя kein keine nicht ohne nie nunca sin niciodată fără nu değil yok không δεν χωρίς لا
    لم ليس नहीं
""")

PERSONAL: Final = _set("""
    i me my mine myself you your yours we our us я мне мой моя мы вы ты нам вам
""")

_NUMBERS: Final = """
2:two,два,две 3:three,три 4:four,четыре 5:five,пять 6:six,шесть 7:seven,семь 8:eight,восемь
9:nine,девять 10:ten,десять 11:eleven 12:twelve,двенадцать 20:twenty,двадцать 30:thirty,тридцать
40:forty,сорок 50:fifty 60:sixty
"""
NUMBER_WORDS: Final = {
    word: number
    for entry in _NUMBERS.split()
    for number, _, forms in [entry.partition(":")]
    for word in forms.split(",")
}

_IRREGULAR: Final = """
be:am,is,are,was,were,been,being have:has,had,having do:does,did,done,doing go:went,gone,goes
begin:began,begun write:wrote,written take:took,taken become:became give:gave,given make:made
come:came know:knew,known find:found think:thought tell:told say:said leave:left hold:held lead:led
build:built win:won lose:lost sell:sold send:sent buy:bought bring:brought teach:taught fight:fought
catch:caught sing:sang,sung drink:drank,drunk run:ran swim:swam,swum grow:grew,grown
throw:threw,thrown fly:flew,flown draw:drew,drawn see:saw,seen speak:spoke,spoken break:broke,broken
choose:chose,chosen drive:drove,driven rise:rose,risen ride:rode,ridden wear:wore,worn
fall:fell,fallen eat:ate,eaten forget:forgot,forgotten hide:hid,hidden meet:met feed:fed
get:got,gotten sit:sat stand:stood understand:understood keep:kept sleep:slept feel:felt mean:meant
spend:spent lend:lent pay:paid lay:laid die:died,dying,dead,death strike:struck bear:born,borne,bore
shoot:shot steal:stole,stolen freeze:froze,frozen shake:shook,shaken man:men woman:women
child:children person:people foot:feet tooth:teeth mouse:mice wife:wives life:lives
marry:married,marriage bury:buried
"""
IRREGULAR: Final = {
    form: base for entry in _IRREGULAR.split() for base, _, forms in [entry.partition(":")] for form in forms.split(",")
}
"""The base of forms that no ending betrays, for common verbs and nouns."""

_CYRILLIC_ENDINGS: Final = """
ировать алась ались алось анная анные анный анных аться ающая ающие ающий енная енные енный енных
еться ивать илась ились илось иться овать остью ывать яться ался вшая вшие вший ется ился ится иями
ости ость ются ятся ает ала али ало ами ана ано аны ать ают его ела ели ело ему ена ено ены ете еть
ешь ила или ило ими ите ить ишь иям иях ого ому ует уть ыла ыли ыло ыми яет яла яли яло ями ять яют
ал ам ан ат ах ая ев ее ей ел ем ен ею ие ии ий ил ит их ию ия ов ое ой ом ою ут ую ые ый ыл ых ье
ью ья ют юю ял ям ят ях яя а е и й о у ы ь ю я
"""
CYRILLIC_ENDINGS: Final = tuple(_CYRILLIC_ENDINGS.split())
"""Longest first."""

CONCESSIONS: Final = ("while", "although", "though", "even if", "хотя", "пусть")
"""A clause that opens so leads up to an answer, even where it says what is not known."""

CONJUNCTIONS: Final = ("but", "however", "yet", "но", "однако")
"""Between a refusal and what is told all the same."""

COURTESIES: Final = (
    r"(?:sure|certainly|of course|absolutely|great|good question|great question|you're welcome|hello|hi|hi there|hey)",
    r"(?:(?:many )?thanks|thank you)(?: (?:so|very) much| a lot)?(?: for (?:\w+ ){0,5}\w+)?",
    r"(?:i )?hope (?:this|that|it) (?:helps|answers your question|was helpful)(?: you)?",
    r"(?:please )?(?:let me know|feel free to (?:ask|reach out|contact us)|don't hesitate to (?:ask|contact))\b[^.!]*",
    r"(?:i'm |i am |we're )?(?:happy|glad) to (?:help|assist)\b[^.!]*",
    r"have a (?:great|nice|good|wonderful) (?:day|evening|weekend|one)",
    r"(?:конечно|разумеется|хороший вопрос|здравствуйте|привет|добрый день|пожалуйста|всегда пожалуйста)",
    r"(?:большое )?спасибо(?: за (?:\w+ ){0,4}\w+)?",
    r"надеюсь,? (?:что )?(?:это|я) (?:помо\w+|ответ\w+)(?: \w+){0,4}",
    r"(?:обращайтесь|если (?:у вас )?(?:есть|будут|возникнут|остались) (?:\w+ ){0,3}вопрос\w*,[^.!]*)",
    r"(?:рад|рада|рады) (?:помочь|был\w* помочь)",
    r"(?:gern|gerne|natürlich|selbstverständlich|gute frage|hallo|guten tag)",
    r"(?:vielen )?dank(?: für (?:\w+ ){0,4}\w+)?",
    r"ich hoffe,? (?:das|dies) hilft(?: \w+){0,3}",
    r"bei (?:weiteren |allen )?fragen [^.!]*",
)
"""A sentence that is one of these from end to end is said for politeness (English, Russian, German)."""

REFUSALS: Final = (
    (
        r"\bi (?:really |just |honestly |simply )?(?:do not|don't|dont) (?:actually |really "
        r")?(?:know|have (?:an|any|the|that|enough|sufficient|access)\b)"
    ),
    r"\b(?:i'm|i am|we're|we are) (?:not sure|not certain|unsure)\b",
    (
        r"\bi (?:have no (?:idea|information|knowledge|way)|couldn't find|could not find|can't "
        r"find|cannot find|did not find|didn't find)\b"
    ),
    (
        r"\b(?:i|we) (?:can't|cannot|can not|could not|couldn't|am unable to|are unable to|won't "
        r"be able to) (?:\w+ ){0,2}(?:answer|say|tell|determine|provide|help|respond|confirm|"
        r"verify|assist|comment)\b"
    ),
    (
        r"\b(?:cannot|can't|can not|could not|couldn't) be (?:answered|determined|found|inferred) "
        r"(?:from|based|with|in|using)\b"
    ),
    (
        r"\b(?:unable|impossible|not possible|not able) to (?:answer|determine|say|tell|help|respond|"
        r"comment|provide an? (?:\w+ )?answer)\b"
    ),
    r"\b(?:cannot|can't|can not) (?:answer|determine)\b[^.]{0,40}\b(?:question|this|that|it)\b",
    (
        r"\b(?:context|passages?|documents?|text|texts|sources?|information|articles?|excerpts?|"
        r"search results?)\b[^.?!]{0,60}?\b(?:does not|doesn't|do not|don't|did not|didn't|is not|"
        r"isn't) (?:\w+ )?(?:mention|say|contain|include|provide|specify|state|provided|"
        r"sufficient|enough|available|answer|address|give)"
    ),
    (
        r"\b(?:there is|there's|there are|i have|we have|has|with) (?:no|not enough|insufficient) "
        r"(?:\w+ )?(?:information|info|data|details?|context|evidence|"
        r"mention)\b[^.?!]{0,40}(?:\b(?:to answer|in the|about|provided|available|on this|"
        r"regarding|given)|[.!]|$)"
    ),
    r"\b(?:insufficient|not enough|no relevant) (?:information|context|data)\b",
    (
        r"^\W*(?:no answer|unanswerable|n/a|unknown|not (?:known|sure|available|mentioned|"
        r"specified|stated|provided)|no idea|i can't say|hard to say|cannot say|it is unknown|"
        r"it's unknown)\W*$"
    ),
    (
        r"\b(?:я|мы) (?:\w+ )?не (?:знаю|знаем|могу (?:\w+ )?(?:ответить|сказать|найти|помочь|"
        r"предоставить|определить|дать)|можем (?:\w+ )?(?:ответить|сказать|найти|помочь)|уверена?|"
        r"нашла?|нашёл|располагаю|имею (?:\w+ )?(?:информации|данных))\b"
    ),
    (
        r"(?:^|[.!,;] *)(?:к сожалению,? |увы,? |простите,? |извините,? ){0,8}(?:но )?не (?:знаю|"
        r"уверена?\b|могу (?:\w+ )?(?:ответить|сказать|помочь|определить))"
    ),
    r"\bне могу (?:\w+ ){0,2}(?:ответить|сказать|помочь|определить)\b",
    (
        r"\b(?:невозможно|нельзя|не удалось|не удаётся|не удается|затрудняюсь|не представляется "
        r"возможным) (?:\w+ ){0,2}(?:ответить|определить|установить|найти|сказать)\b"
    ),
    (
        r"\b(?:нет|недостаточно|отсутствует|не хватает) (?:\w+ ){0,2}(?:информаци\w*|данных|"
        r"сведени\w*|ответа)\b"
    ),
    (
        r"\b(?:контекст\w*|текст\w*|документ\w*|источник\w*|отрыв\w*|"
        r"фрагмент\w*)\b[^.?!]{0,60}\bне (?:содерж\w+|упомина\w+|указан\w*|сказано|говорится|"
        r"приводится|дан[аоы]?)\b"
    ),
    (
        r"^\W*(?:неизвестно|не указано|нет ответа|ответ неизвестен|понятия не имею|трудно сказать|"
        r"без понятия)\W*$"
    ),
    r"\b(?:(?:ich|wir) (?:weiß|wissen)|(?:das|es) (?:weiß ich|wissen wir)) (?:(?:es|das|dazu|darüber|leider) )*nicht\b",
    (
        r"\b(?:dazu|darüber|hierzu|davon) (?:haben?|konnten?|finden?|liegen|liegt|gibt|steht|enthalten|"
        r"enthält) (?:\w+ ){0,6}(?:nichts|keine\w* (?:\w+ )?(?:information\w*|angabe\w*|hinweis\w*|daten|antwort))\b"
    ),
    (
        r"\b(?:dokumente?n?|kontexte?n?|texte?n?|quellen?|unterlagen|abschnitte?n?) (?:enthalten|enthält|nennen|nennt|"
        r"geben|gibt|sagen|sagt|erwähnen|erwähnt) (?:\w+ ){0,4}(?:nicht|nichts|keine\w*)\b"
    ),
    r"\b(?:kann|können|lässt sich) (?:\w+ ){0,5}nicht (?:beantwort\w+|sagen|bestimm\w+|ermitteln|feststellen)\b",
    r"\b(?:geht|gehen) (?:\w+ ){0,6}nicht hervor\b",
    r"^\W*(?:(?:das )?ist )?(?:nicht (?:angegeben|bekannt)|unbekannt|keine angaben?)\W*$",
    r"\bответить (?:\w+ ){0,3}(?:нельзя|невозможно|не могу|не удалось)\b",
    r"^\W*(?:ขออภัย\W*)?(?:ผม|ฉัน|ดิฉัน|เรา)?(?:ไม่ทราบ(?:คำตอบ)?|ไม่(?:ได้)?ระบุ)(?:ครับ|ค่ะ|คะ)?\W*$",
    r"^\W*(?:ขออภัย\W*)?ไม่(?:มี|พบ)ข้อมูล",
    r"(?:เอกสาร|บริบท|ข้อความ|บทความ|แหล่งข้อมูล)[^.?!]{0,40}ไม่ได้(?:กล่าวถึง|ระบุ|บอก|ให้ข้อมูล)",
)
"""A response refuses where one of these patterns fits (English, Russian, German and Thai; case is ignored)."""
