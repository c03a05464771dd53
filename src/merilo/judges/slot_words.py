"""Word tables of slots: numerals, units, months, negations and comparison words of several languages."""

from typing import Final


def _table(lines: str) -> dict[str, str]:
    """Return a table of words from lines such as "value: word word"."""
    return {
        word: value.strip()
        for line in lines.strip().splitlines()
        for value, _, forms in [line.partition(":")]
        for word in forms.split()
    }


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMERALS: Final = _table("""
0: zero null ноль нуля
2: two zwei два две двух двум двумя deux dos दो
3: three drei три трёх трех трём трем тремя trois tres तीन ثلاثة ثلاث
4: four vier четыре четырёх четырех четырём четырьмя quatre cuatro चार أربعة أربع
5: five fünf пять пяти пятью cinq cinco पाँच पांच خمسة خمس
6: six sechs шесть шести шестью seis छह ستة ست
7: seven sieben семь семи семью sept siete सात سبعة سبع
8: eight acht восемь восьми восемью huit ocho आठ ثمانية ثماني
9: nine neun девять девяти девятью neuf nueve नौ تسعة تسع
10: ten zehn десять десяти десятью dix diez दस عشرة عشر
11: eleven elf одиннадцать одиннадцати onze
12: twelve zwölf двенадцать двенадцати dozen dutzend douze doce बारह
13: thirteen dreizehn тринадцать тринадцати treize trece
14: fourteen vierzehn четырнадцать четырнадцати quatorze catorce
15: fifteen fünfzehn пятнадцать пятнадцати quinze
16: sixteen sechzehn шестнадцать шестнадцати
17: seventeen siebzehn семнадцать семнадцати
18: eighteen achtzehn восемнадцать восемнадцати
19: nineteen neunzehn девятнадцать девятнадцати
20: twenty zwanzig двадцать двадцати vingt veinte बीस عشرين عشرون
30: thirty dreißig dreissig тридцать тридцати trente treinta तीस ثلاثين ثلاثون
40: forty vierzig сорок сорока quarante cuarenta चालीस أربعين أربعون
50: fifty fünfzig пятьдесят пятидесяти cinquante cincuenta पचास خمسين خمسون
60: sixty sechzig шестьдесят шестидесяти soixante sesenta
70: seventy siebzig семьдесят семидесяти setenta
80: eighty achtzig восемьдесят восьмидесяти ochenta
90: ninety neunzig девяносто девяноста noventa
100: hundert сто ста
200: двести двухсот
300: триста трёхсот трехсот
400: четыреста
500: пятьсот
600: шестьсот
700: семьсот
800: восемьсот
900: девятьсот
""")
_GERMAN_ONES: Final = "ein zwei drei vier fünf sechs sieben acht neun".split()
_GERMAN_TENS: Final = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
NUMERALS: Final[dict[str, float]] = {
    **{word: float(value) for word, value in _NUMERALS.items()},
    **{
        f"{one}und{ten}": float(10 * (tens + 2) + ones + 1)
        for tens, ten in enumerate(_GERMAN_TENS)
        for ones, one in enumerate(_GERMAN_ONES)
    },
    **{f"{one}hundert": 100.0 * (ones + 1) for ones, one in enumerate(_GERMAN_ONES)},
    **{f"{one}tausend": 1000.0 * (ones + 1) for ones, one in enumerate(_GERMAN_ONES)},
}
"""Numbers as words. "One" is left out, because it is an article or a pronoun in all three languages."""
ONES: Final = _set("one eins один одна одно одного одной одну")
"""Words for 1, which match a 1 but never conflict with another number."""

MULTIPLIERS: Final[dict[str, float]] = {
    word: float(value)
    for word, value in _table("""
100: hundred hundreds सौ
1e3: thousand thousands mille mil हज़ार हजार ألف ألفا آلاف tausend tsd тысяча тысячи тысяч тысячу тыс k
1e5: लाख
1e6: million millions millón millones مليون ملايين millionen mio mn миллион миллиона миллионов млн
1e7: करोड़
1e9: billion billions milliard milliards مليار milliarde milliarden mrd bn миллиард миллиарда миллиардов млрд
1e12: trillion trillions billionen триллион триллиона триллионов трлн
""").items()
}

_UNITS: Final = _table("""
time 0.001: ms millisecond milliseconds millisekunde millisekunden мс миллисекунда миллисекунды миллисекунд
time 1: s sec secs second seconds sek sekunde sekunden сек секунда секунды секунд секунду секундах
time 60: min mins minute minutes minuten мин минута минуты минут минуту минутах
time 3600: h hr hrs hour hours std stunde stunden ч час часа часов часах часу
time 86400: day days tag tage tagen день дня дней днях сутки суток
time 604800: week weeks woche wochen неделя недели недель неделю неделях
months 1: month months monat monate monaten месяц месяца месяцев месяцах
months 12: year years jahr jahre jahren год года лет годы годов
months 120: decade decades jahrzehnt jahrzehnte jahrzehnten десятилетие десятилетия десятилетий
length 0.001: mm millimetre millimetres millimeter millimeters millimetern мм миллиметр миллиметра миллиметров
length 0.01: cm centimetre centimetres centimeter centimeters zentimeter zentimetern см сантиметр сантиметра сантиметров
length 1: m metre metres meter meters metern м метр метра метров метрах
length 1000: km kilometre kilometres kilometer kilometers kilometern км километр километра километров километрах
length 1609.344: mi mile miles meile meilen миля мили миль
length 0.3048: ft foot feet fuß фут фута футов
length 0.0254: inch inches zoll дюйм дюйма дюймов
length 0.9144: yd yard yards ярд ярда ярдов
mass 0.001: mg milligram milligrams milligramm мг миллиграмм миллиграмма миллиграммов
mass 1: g gram grams gramm г грамм грамма граммов
mass 1000: kg kilo kilos kilogram kilograms kilogramm кг килограмм килограмма килограммов
mass 1e6: t ton tons tonne tonnes tonnen т тонна тонны тонн
mass 453.59: lb lbs pfund фунт фунта фунтов
mass 28.35: oz ounce ounces unze unzen
volume 0.001: ml millilitre millilitres milliliter milliliters мл миллилитр миллилитра миллилитров
volume 1: l litre litres liter liters litern л литр литра литров
area 1: m² qm м² quadratmeter quadratmetern
area 1e4: ha hectare hectares hektar га гектар гектара гектаров
area 1e6: km² км² quadratkilometer quadratkilometern
speed 1: km/h kph км/ч kmh
speed 1.609344: mph
speed 3.6: m/s м/с
data 1: byte bytes байт байта
data 1e3: kb кб kilobyte kilobytes
data 1e6: mb мб megabyte megabytes мегабайт мегабайта
data 1e9: gb гб gigabyte gigabytes гигабайт гигабайта
data 1e12: tb тб terabyte terabytes
percent 1: % percent pct prozent процент процента процентов
degree 1: ° degree degrees grad градус градуса градусов celsius
fahrenheit 1: fahrenheit
usd 1: $ usd dollar dollars доллар доллара долларов
eur 1: € eur euro euros евро
gbp 1: £ gbp
jpy 1: ¥ yen йен
rub 1: ₽ rub ruble rubles rouble roubles rubel руб рубль рубля рублей
power 1: w watt watts вт ватт
power 1e3: kw kilowatt kilowatts квт киловатт
power 1e6: mw megawatt megawatts мвт мегаватт
power 1e9: gw gigawatt gigawatts гвт
frequency 1: hz hertz гц
frequency 1e3: khz кгц
frequency 1e6: mhz мгц
frequency 1e9: ghz ггц
pressure 1: bar бар
voltage 1: v volt volts в вольт
time 1: seconde secondes segundo segundos ثانية ثوان सेकंड 秒 초
time 60: minuto minutos دقيقة دقائق मिनट 分钟 分鐘 分間 分 분
time 3600: heure heures hora horas ساعة ساعات घंटे घंटा घंटों 小时 小時 時間 시간
time 86400: jour jours día días يوم يوما أيام दिन दिनों 天 日間 일
time 604800: semaine semaines semana semanas أسبوع أسابيع सप्ताह हफ्ते 周 週間 주
months 1: mois mes meses شهر أشهر महीने महीना महीनों 个月 個月 か月 ヶ月 カ月 개월
months 12: an ans année années año años سنة سنوات أعوام साल वर्ष वर्षों 年 년
length 0.001: millimètre millimètres milímetro milímetros 毫米 ミリメートル ミリ 밀리미터
length 0.01: centimètre centimètres centímetro centímetros سنتيمتر सेंटीमीटर 厘米 センチメートル センチ 센티미터
length 1: mètre mètres metro metros متر مترا أمتار मीटर 米 メートル 미터
length 1000: kilomètre kilomètres kilómetro kilómetros كيلومتر كيلومترا كيلومترات
length 1000: كم किलोमीटर किमी 公里 千米 キロメートル キロ 킬로미터
mass 1: gramme grammes gramo gramos غرام غراما جرام ग्राम 克 グラム 그램
mass 1000: kilogramme kilogrammes kilogramo kilogramos كيلوغرام كيلوغراما
mass 1000: كيلوجرام किलोग्राम किलो 公斤 千克 キログラム 킬로그램
mass 1e6: tonelada toneladas طن أطنان टन 吨 トン 톤
volume 0.001: mililitro mililitros 毫升 ミリリットル 밀리리터
volume 1: litro litros لتر لترا लीटर 升 リットル 리터
data 1024: kib
data 1048576: mib
data 1073741824: gib
data 1099511627776: tib
percent 1: प्रतिशत パーセント 퍼센트
usd 1: dólar dólares دولار دولارا डॉलर 美元 ドル 달러
eur 1: يورو यूरो 欧元 ユーロ 유로
jpy 1: 円 日元
cny 1: yuan 元 人民币
krw 1: won 원
inr 1: ₹ rupee rupees रुपये रुपया रुपए
sar 1: riyal riyals ريال ريالا
""")
UNITS: Final[dict[str, tuple[str, float]]] = {
    word: (parts[0], float(parts[1])) for word, entry in _UNITS.items() for parts in [entry.split()]
}
"""The dimension of a unit, and its size in the dimension's base unit."""
DEPENDS_ON_CASE: Final = _set("в т")
"""Units that are far more often another word: not read after a number."""
SQUARE: Final = _set(
    "square sq quadrat квадратный квадратных квадратные квадратного кв cubic kubik кубических кубический"
)

MONTHS: Final[dict[str, int]] = {
    word: int(value)
    for word, value in _table("""
1: january jan januar jänner январь января январе
2: february feb februar февраль февраля феврале
3: march mar märz март марта марте
4: april apr апрель апреля апреле
5: may mai май мая мае
6: june jun juni июнь июня июне
7: july jul juli июль июля июле
8: august aug август августа августе
9: september sep sept сентябрь сентября сентябре
10: october oct oktober okt октябрь октября октябре
11: november nov ноябрь ноября ноябре
12: december dec dezember dez декабрь декабря декабре
1: janvier enero يناير जनवरी
2: février febrero فبراير फरवरी फ़रवरी
3: mars marzo مارس मार्च
4: avril abril أبريل ابريل अप्रैल
5: mayo مايو मई
6: juin junio يونيو जून
7: juillet julio يوليو जुलाई
8: août agosto أغسطس अगस्त
9: septembre septiembre سبتمبر सितंबर सितम्बर
10: octobre octubre أكتوبر अक्टूबर अक्तूबर
11: novembre noviembre نوفمبر नवंबर नवम्बर
12: décembre diciembre ديسمبر दिसंबर दिसम्बर
""").items()
}
AMBIGUOUS_MONTHS: Final = _set(
    "may march mar mai jan jun sep dec august aug apr feb jul oct nov okt dez sept мая мае mars mayo मई"
)
"""Names of months that are also other words: read as a month only next to a number or after "in"."""
WEEKDAYS: Final[dict[str, int]] = {
    word: int(value)
    for word, value in _table("""
1: monday mondays montag montags понедельник понедельника понедельникам
2: tuesday tuesdays dienstag dienstags вторник вторника вторникам
3: wednesday wednesdays mittwoch mittwochs среду средам
4: thursday thursdays donnerstag donnerstags четверг четверга четвергам
5: friday fridays freitag freitags пятницу пятница пятницы пятницам
6: saturday saturdays samstag samstags sonnabend субботу суббота субботы субботам
7: sunday sundays sonntag sonntags воскресенье воскресенья воскресеньям
""").items()
}
ORDINALS: Final[dict[str, int]] = {
    word: int(value)
    for word, value in _table("""
1: first erste ersten erster erstes
2: second zweite zweiten zweiter zweites
3: third dritte dritten dritter drittes
4: fourth vierte vierten vierter viertes
5: fifth fünfte fünften fünfter fünftes
6: sixth sechste sechsten sechster sechstes
7: seventh siebte siebten siebter siebtes
8: eighth achte achten achter achtes
9: ninth neunte neunten neunter neuntes
10: tenth zehnte zehnten zehnter zehntes
""").items()
} | {
    stem + ending: value
    for value, stem in enumerate("перв втор трет четверт пят шест седьм восьм девят десят".split(), 1)
    for ending in "ый ой ий ая ое ого ому ым ом ую ые ых ыми ья ье ьего ьему ьей ью".split()
}
BEFORE_ORDINAL: Final = _set("the its his her their a every this that on in")
"""Words before an English ordinal; "second" is otherwise a unit of time."""

HEDGES: Final = _set(
    "about around approximately approx roughly nearly almost some circa ca c etwa rund ungefähr fast knapp gut zirka "
    "около примерно почти приблизительно порядка ~ ≈"
)
BEFORE_YEAR: Final = _set(
    "in since by until till from of to and during before after year years im jahr jahre seit bis ab von vor nach und "
    "в с до к по от после year: и или or between zwischen между circa about"
)

NEGATIONS: Final = _set(
    "not no never none neither nor without cannot nobody nothing nowhere n't "
    "nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder "
    "не нет ни без никогда никто ничего нельзя никакой никаких никаким "
    "pas jamais aucun aucune sans nunca jamás sin ningún ninguna nadie لا لم لن ليس ليست غير بدون नहीं मत बिना"
)
UNABLE: Final = _set("unable failed fails fail lacks lacked lack refused refuses")
"""English verbs that deny as "not" does."""

_AXES: Final = """
size + more greater higher larger bigger longer taller heavier faster older above over exceeds exceed exceeding exceeded
size + mehr größer größere höher höhere länger schwerer schneller älter über übersteigt
size + больше более выше длиннее тяжелее быстрее старше свыше превышает
size - less fewer lower smaller shorter lighter slower younger below under
size - weniger kleiner kleinere niedriger geringer kürzer leichter langsamer jünger unter
size - меньше менее ниже короче легче медленнее младше
extreme + most highest largest biggest longest tallest heaviest fastest oldest greatest maximum
extreme + größte größten größter höchste höchsten längste längsten schnellste älteste meisten maximal
extreme + наибольший самый крупнейший крупнейшая наибольшее максимум максимальный максимальная
extreme - least lowest smallest shortest lightest slowest youngest fewest minimum
extreme - kleinste kleinsten kleinster niedrigste niedrigsten kürzeste kürzesten langsamste jüngste wenigsten minimal
extreme - наименьший наименьшее минимум минимальный минимальная мельчайший
order + before earlier prior vor bevor vorher früher до перед раньше прежде
order - after later following nach nachdem danach später после позже затем позднее
bound + at_least minimum mindestens wenigstens минимум
bound - at_most maximum höchstens maximal максимум
trend + increase increases increased increasing rise rises rose risen rising grow grows grew grown growing gain gained
trend + raise raises raised raising gains improve improves improved doubled climbed
trend + steigt stieg gestiegen steigen stiegen wächst wuchs gewachsen erhöht erhöhte erhöhen zunahm zugenommen nimmt_zu
trend + вырос выросла выросло выросли растёт растет увеличился увеличилась увеличилось увеличились увеличивает
trend + увеличивается повысился повысилась повысились повышает повысил увеличил повышается возрос возросла
trend - decrease decreases decreased decreasing fall falls fell fallen falling drop drops dropped dropping decline
trend - declines declined declining shrink shrinks shrank reduce reduces reduced reducing lose lost worsens worsened
trend - lowers lowered halved
trend - sinkt sank gesunken sinken sanken fällt fiel gefallen fielen verringert verringerte senkt senkte abnahm
trend - schrumpft schrumpfte abgenommen
trend - упал упала упало упали падает снизился снизилась снизилось снизились снижает уменьшился уменьшилась
trend - уменьшились уменьшает уменьшается сократился сократилась сократились снизил уменьшил снижается
place + first erste ersten erster erstes первый первая первое первым первой первого первую
place - last final letzte letzten letzter letztes последний последняя последнее последним последней последнего
edge + begins began begin starts started start opens opened open beginnt begann startet öffnet öffnete eröffnet
edge + начинается началось началась начался открывается открылся открылась открыт открыта открыли
edge - ends ended end stops stopped stop closes closed close endet endete stoppt schließt schloss geschlossen
edge - заканчивается закончилось закончилась закончился закрывается закрылся закрылась закрыт закрыта закрыли
gate + allowed allows allow permitted permits enabled enables enable includes included
gate + erlaubt gestattet aktiviert aktivieren enthalten
gate + разрешено разрешён разрешена разрешает включён включен включена включает
gate - forbidden forbids prohibited prohibits disabled disables disable excludes excluded
gate - verboten untersagt deaktiviert deaktivieren ausgeschlossen
gate - запрещено запрещён запрещена запрещает отключён отключен отключена отключает исключает
quantity + all every each always alle jeder jede jedes immer все каждый каждая каждое всегда
quantity - none never no kein keine nie niemals никто никогда ни
side + left links слева левый левая
side - right rechts справа правый правая
latitude + north northern nord norden nördlich север севере северный северная северной
latitude - south southern süd süden südlich юг юге южный южная южной
longitude + east eastern ost osten östlich восток востоке восточный восточная восточной
longitude - west western westen westlich запад западе западный западная западной
trend + augmenté augmente augmentent augmentait hausse progressé monté aumentó
trend + aumenta aumentaron aumentado subió sube subieron creció crecieron
trend - baissé baisse baissent baissait diminué diminue diminuent reculé chuté
trend - disminuyó disminuye disminuyeron bajó bajan bajaron cayó cayeron redujo
edge + ouvre ouvrent ouvert abre abren abrió empieza comienza commence
edge - ferme ferment fermé cierra cierran cerró termina acaba finit
gate + autorisé autorisée autorisés permitido permitida permitidos
gate - interdit interdite interdits prohibido prohibida prohibidos
order + avant antes
order - après después
side + gauche izquierda
side - droite derecha
"""
AXES: Final[dict[str, tuple[tuple[str, int], ...]]] = {}
for _line in _AXES.strip().splitlines():
    _axis, _pole, *_forms = _line.split()
    for _form in _forms:
        AXES[_form] = (*AXES.get(_form, ()), (_axis, 1 if _pole == "+" else -1))
"""The axes on which a comparison word has a pole: +1 or -1."""

_PARTS: Final = """
trend + 上升 上涨 增加 增长 提高 上昇 増加 増え 上が 증가 상승 늘었 늘어 올랐 올라 ارتفع زاد ازداد बढ़ बढ
trend - 下降 下跌 减少 降低 下落 減少 減り 減っ 下が 低下 감소 하락 줄었 줄어 내렸 떨어 انخفض تراجع هبط घट गिर
edge + 开始 开门 開始 始ま 開店 시작 بدأ يبدأ शुरू
edge - 结束 关门 关闭 終了 終わ 閉ま 閉店 끝나 닫 انته ينته समाप्त बंद
gate + 允许 許可 허용 مسموح अनुमति
gate - 禁止 금지 ممنوع मना वर्जित
half + 上午 午前 오전 صباح सुबह
half - 下午 午後 오후 مساء शाम
size + 超过 以上 이상
size - 低于 以下 이하 未満
"""
PARTS: Final[tuple[tuple[str, str, int], ...]] = tuple(
    (part, axis, 1 if pole == "+" else -1)
    for line in _PARTS.strip().splitlines()
    for axis, pole, *parts in [line.split()]
    for part in parts
)
"""Parts of words with a pole, for scripts without spaces and languages whose words have many forms."""
DENIALS: Final = ("不", "没", "沒", "未", "无", "無", "ません", "ない", "なかった", "않", "없", "못하", "아니", "안 ")
"""Parts of Chinese, Japanese and Korean text that deny. The first six stand before what they deny, the others after."""

PHRASES: Final[tuple[tuple[tuple[str, ...], str], ...]] = tuple(
    (tuple(phrase.split()), meaning)
    for meaning, phrases in {
        "at_least": "at least,no less than,not less than,no fewer than,nicht weniger als,не менее,не меньше,"
        "по меньшей мере,как минимум,no earlier than",
        "at_most": "at most,no more than,not more than,up to,nicht mehr als,bis zu,не более,не больше,не свыше,"
        "no later than,no longer than,не позднее",
        "no_longer": "no longer,not anymore,nicht mehr,больше не,уже не",
        "": "not only,nicht nur,не только,no doubt,not just,nothing but,none other than,не просто",
    }.items()
    for phrase in phrases.split(",")
)
"""Phrases that are read as one word, longest first where they share a beginning; an empty meaning says nothing."""

FUNCTION_WORDS: Final = _set(
    "a an the of in on at to for from by with as and or but if then than that this these those which who whom whose "
    "what when where why how it its he she they we you i his her their our your my him them us me is are was were be "
    "been being am has have had do does did can could may might must shall should will would not no so such also only "
    "there here into onto over under about between through during before after while since until out up down off per "
    "der die das den dem des ein eine einen einem einer eines und oder aber wenn dann als dass dieser diese dieses "
    "welche welcher es er sie wir ihr ich ist sind war waren sein hat haben hatte wird werden wurde wurden kann können "
    "muss müssen soll nicht kein keine auch nur im in am an auf aus bei mit nach von vom vor zu zum zur für über unter "
    "durch um bis seit wie wo was wer sich "
    "и а но или если то что это этот эта эти как где когда кто он она оно они мы вы я его её ее их в во на с со к ко "
    "по о об от до из у за для при под над без через между не ни был была было были есть быть также только же ли бы "
    "который которая которое которые "
    "le la les un une des du au aux et ou est sont il elle ils elles on ce cette que qui dans par pour sur avec "
    "el los las una unos unas del al y o es son fue se su lo por para con en كان هو هي في من على إلى عن "
    "है हैं था थे का की के को में से ने और यह वह पर"
)
"""Common words without content. Lower case."""
ARTICLES: Final = _set("a an the")
PREPOSITIONS: Final = _set("of in on at to for from by with into onto per during between")
MODALS: Final = _set("can could will would should may might must")
_AUXILIARIES: Final = _set(
    "is are was were be been has have had do does did can could will would should may might must shall"
)
_PRONOUNS: Final = _set("he she they we i his her its our their your")
NOT_AFTER_ARTICLE: Final = ARTICLES | PREPOSITIONS | MODALS | _AUXILIARIES | _PRONOUNS | _set("it and or but than as")
NOT_AFTER_PREPOSITION: Final = _AUXILIARIES - _set("be do have") | _set("of and or but than he she they we i")
TIME_WORDS: Final = _set(
    "today yesterday tomorrow ago during when while before after since until till once now currently recently daily "
    "weekly monthly yearly annually always never every each century centuries decade decades year years month months "
    "week weeks day days hour hours minute minutes second seconds morning evening night noon midnight afternoon spring "
    "summer autumn fall winter season time times date period era age ages war revolution reign later earlier then "
    "first last next soon immediately early late between"
)
"""English words, one of which a text that says when something happens is expected to have if it has no number."""
