"""What changes in a text although the page has not: ages, countdowns, counters, the time of day, request numbers.

One RE2 pattern for all languages: linear in the length of the text.
"""

from __future__ import annotations

import re2

from recrawl.crawl.detect.remove_matches import remove_matches

_N = "[0-9٠-٩۰-۹०-९০-৯]"
_NUMBER = r"[0-9](?:[., ]?[0-9])*\s?(?:k|m|тыс\.?|tys\.?|万|萬|천|만)?"
_FEW = r"(?:[0-9]+|an?|one|a few|ein(?:er|em|igen)?|wenigen|une?|quelques|un[ao]s?|poc[oa]s|um|uma)"

_AGES = [
    rf"(?:about |over |almost )?{_FEW}\s?(?:s|m|h|d|w|y|mo|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?)\s+ago",
    rf"vor\s+(?:etwa |über )?{_FEW}\s+(?:sekunden?|min\.?|minuten?|std\.?|stunden?|tag(?:en)?|wochen?|monat(?:en)?|jahr(?:en)?)",
    rf"il y a\s+(?:environ |plus d[e'] ?)?{_FEW}\s+(?:secondes?|minutes?|min|heures?|h|jours?|j|semaines?|mois|ans?|années?)",
    rf"hace\s+(?:unos |unas )?{_FEW}\s+(?:segundos?|minutos?|min|horas?|h|días?|semanas?|mes(?:es)?|años?)",
    rf"há\s+(?:cerca de )?{_FEW}\s+(?:segundos?|minutos?|min|horas?|h|dias?|semanas?|mês|meses|anos?)",
    rf"{_FEW}\s+(?:segundos?|minutos?|horas?|dias?|semanas?|mês|meses|anos?)\s+atrás",
    rf"{_FEW}\s+(?:second[oi]|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi])\s+fa",
    rf"{_FEW}\s+(?:seconden?|minuten|minuut|uur|uren|dag(?:en)?|week|weken|maand(?:en)?|jaar|jaren)\s+geleden",
    rf"för\s+{_FEW}\s+\S+\s+sedan",
    rf"(?:for\s+)?{_FEW}\s+(?:sekunder?|minutt?(?:er)?|timer?|dage?r?|uger?|uker?|måned(?:er)?|år)\s+siden",
    rf"{_FEW}\s+\S+\.?\s+(?:temu|назад|тому|sitten|ezelőtt)",
    r"(?:минуту|час|день|неделю|месяц|год)\s+назад",
    rf"(?:před|pred)\s+{_N}+\s+(?:sekundami|minutami|hodinami|hodinou|dny|dňami|týdny|měsíci|lety)",
    rf"преди\s+{_N}+\s+\S+|acum\s+{_N}+\s+\S+",
    rf"πριν\s+(?:από\s+)?{_N}+\s+(?:δευτερόλεπτα|λεπτ[άό]|ώρε?[ςα]|ημέρε?[ςα]|μέρε?[ςα]|εβδομάδε?[ςα]|μήνε?[ςα]|χρόνια|έτη)",
    rf"{_N}+\s+(?:saniye|dakika|saat|gün|hafta|ay|yıl)\s+önce",
    rf"{_N}+\s+(?:giây|phút|giờ|ngày|tuần|tháng|năm)\s+trước",
    rf"{_N}+\s+(?:detik|menit|jam|hari|minggu|bulan|tahun)\s+(?:yang )?lalu",
    rf"{_N}+\s*(?:วินาที|นาที|ชั่วโมง|วัน|สัปดาห์|เดือน|ปี)\s*(?:ที่แล้ว|ที่ผ่านมา|ก่อน)",
    rf"{_N}+\s*(?:秒钟?|秒鐘|分钟|分鐘|分|小时|小時|时|時間|天|日|周|週|週間|星期|个月|個月|か月|ヶ月|カ月|月|年)(?:以|之)?前",
    rf"{_N}+\s*(?:초|분|시간|일|주|주일|개월|달|년)\s*전",
    rf"(?:منذ|قبل)\s+(?:{_N}+\s+)?(?:ثانية|ثوان[يٍ]?|دقيقة|دقائق|دقيقتين|ساعة|ساعات|ساعتين|يوم|يوما|أيام|يومين|أسبوع|أسبوعين|أسابيع|شهر|شهرين|أشهر|سنة|سنتين|سنوات)",
    rf"{_N}+\s+(?:ثانیه|دقیقه|ساعت|روز|هفته|ماه|سال)\s+(?:پیش|قبل)",
    rf"לפני\s+(?:כ-?)?(?:{_N}+\s+)?(?:שניות|דקה|דקות|שעה|שעות|שעתיים|יום|ימים|יומיים|שבוע|שבועות|חודש|חודשים|שנה|שנים)",
    rf"{_N}+\s+(?:सेकंड|सेकेंड|मिनट|घंटे|घंटा|घण्टे|दिन|सप्ताह|हफ़्ते|हफ्ते|महीने|महीना|साल|वर्ष)\s+(?:पहले|पूर्व)",
    rf"{_N}+\s+(?:সেকেন্ড|মিনিট|ঘণ্টা|ঘন্টা|দিন|সপ্তাহ|মাস|বছর)\s+(?:আগে|পূর্বে)",
]
_NOW = (
    "just now|moments ago|yesterday|today|gerade eben|gestern|heute|à l'instant|hier|aujourd'hui|ahora mismo|ayer|hoy|"
    "adesso|ieri|oggi|agora mesmo|ontem|hoje|zojuist|gisteren|vandaag|nyss|igår|idag|wczoraj|dzisiaj|dziś|только что|вчера|"
    "сегодня|щойно|вчора|сьогодні|az önce|dün|bugün|刚刚|昨天|今天|たった今|昨日|今日|방금|어제|오늘|الآن|أمس|اليوم|अभी|कल|आज"
)
_VIEWS = (
    "views?|reads|hits|likes?|shares?|followers|subscribers|impressions|aufrufe|zugriffe|mal (?:gelesen|angesehen)|vues|"
    "lectures|visitas|vistas|visualizaciones|visualizações|visualizzazioni|letture|weergaven|visningar|visninger|wyświetle(?:ń|nia)|odsłon|"
    "просмотр(?:ов|а|ы)?|перегляд(?:ів|и)|görüntülenme|okunma|katselukertaa|lượt xem|kali dilihat|次(?:阅读|閱讀|浏览|瀏覽|观看|觀看|播放)|"
    "阅读|閱讀|浏览|瀏覽|回(?:視聴|再生|閲覧)|いいね|조회|مشاهدات|مشاهدة|زيارة|بازدید|बार देखा गया|व्यूज़?"
)
_LABELS = (
    "views?|hits|reads|visitors?|aufrufe|zugriffe|vues|visitas|visualizzazioni|visualizações|weergaven|wyświetleń|odsłon|"
    "просмотр(?:ов|ы)|переглядів|阅读(?:量|数)?|閱讀|浏览(?:量|数)?|瀏覽|点击(?:量|数)?|閲覧数|再生回数|アクセス数?|조회수?|المشاهدات|عدد المشاهدات|بازدید"
)
_CLOCK = r"[0-9]{1,2}[:.][0-9]{2}(?:[:.][0-9]{2})?(?:\s?(?:am|pm|uhr|h|utc|gmt|cet|cest|bst|est|edt|pst|pdt))?"
_COUNTS = [
    rf"{_NUMBER}\s?(?:{_VIEWS})",
    rf"(?:{_LABELS})\s?[:：]?\s?{_NUMBER}",
    rf"{_NUMBER}\s(?:people|persons?|users?|visitors?|guests?|members?|shoppers?|customers?)\b[^\n.]*\b(?:online|viewing|watching|looking|browsing)\b[^\n.]*",
    r"visitor (?:number|no\.?|#)\s?[0-9., ]*[0-9]",
    r"(?:online|on line)\s?:\s?[^\n]*",
    r"(?:has been|was) (?:accessed|viewed|visited) [0-9.,]+ times",
]
_SERVER = [
    r"(?:request|ray|session|trace|correlation|incident|transaction)[ -]?(?:id|number|no\.?)\s?[:#]?\s?[0-9a-z-]{6,}",
    r"(?:page |seite |página |pagina )?(?:generated|rendered|created|loaded|erzeugt|generiert|générée?|generada|generata)\s(?:in|en)\s[0-9.,]+\s?(?:ms|s|sec\S*|msec|sekunden|segundos)\b",
    rf"(?:last )?(?:updated|refreshed|checked|retrieved|as of|stand|aktualisiert|mis à jour|actualizado|atualizado|aggiornato|bijgewerkt|uppdaterad|zaktualizowano|обновлено|оновлено|güncellendi|更新时间|更新時間|最終更新|更新|업데이트|تحديث)(?: at| um| à| a las| às| alle| om| kl\.?| в)?\s?[:：]?\s?{_CLOCK}",
    r"(?:ends?|closes?|closing|expires?|starts?|within|left|remaining|endet|endet in|termina|termine dans|scade|afloopt|заканчивается)(?: in| en| dans| tra| over)?\s?:?\s?[0-9]+(?:\s?:\s?[0-9]{2}){1,3}",
    r"(?:ends?|closes?|expires?|starts?|within)(?: in)?\s?:?\s?(?:[0-9]{1,3}\s?(?:d|h|m|s|days?|hours?|hrs?|min|mins|minutes?|sec|secs|seconds?)\b[\s,]{0,2}){1,4}",
]
_LINES = [
    rf"(?m:^\s*(?:{_NOW})(?:,?\s(?:at |um |à |a las |às |alle |kl\.? |в |o )?{_CLOCK})?\s*$)",
    r"(?m:^\s*(?:sponsored|advertisement|anzeige|publicité|publicidad|pubblicità|advertentie|реклама|广告|廣告|広告|광고|إعلان)\s?[:：-][^\n]*$)",
    r"(?m:^\s*\([0-9]{1,4}\+?\)\s)",  # what waits for the reader, before a title
]
_OPTIONS = re2.Options()
_OPTIONS.case_sensitive, _OPTIONS.never_capture, _OPTIONS.log_errors = False, True, False
_OPTIONS.longest_match, _OPTIONS.max_mem = True, 64 << 20
PATTERN = re2.compile("|".join((*_AGES, *_COUNTS, *_SERVER, *_LINES)), _OPTIONS)
_MOST = 20_000  # of one text


def without_volatile(text: bytes) -> bytes:
    """A text in UTF-8 without what changes by itself.

    >>> without_volatile("Anna · vor 3 Stunden · 1.204 Aufrufe".encode()).decode()
    'Anna ·  · '
    """
    return remove_matches(PATTERN, text, _MOST)
