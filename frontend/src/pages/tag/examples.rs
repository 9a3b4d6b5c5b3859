//! Texts to try, written for this page.

/// A name and a text.
pub(super) const EXAMPLES: [(&str, &str); 4] = [
    (
        "Oil prices",
        "Crude oil prices climbed on Thursday after the exporting countries agreed to cut their output by two million \
         barrels a day. Traders in London said the agreement would drain stocks before winter. A minister from one \
         Gulf state told reporters that the production ceiling would be kept until the market was stable. Refiners \
         expect petrol and heating oil to become dearer. Shares of the large oil companies rose by three per cent.",
    ),
    (
        "Grain harvest",
        "Farmers will bring in a record wheat harvest this year, the agriculture department said. It put the crop at 62 \
         million tonnes, nine per cent more than last season, after good rain in spring. Maize and barley are also \
         ahead of the average. With grain stores already full, exporters hope for new sales to North Africa, and \
         shipping rates for bulk cargo have begun to rise. Soybean growers were less lucky: frost in May damaged the seedlings.",
    ),
    (
        "Central bank",
        "The central bank left its discount rate unchanged at 5.5 per cent but warned that inflation had not been beaten. \
         Money supply grew faster than planned in the first quarter, and the dollar lost ground against the yen and \
         the mark. Dealers said the bank bought dollars in small amounts to steady the currency. Bond yields \
         fell slightly. Most economists now expect a higher interest rate before the end of the year.",
    ),
    (
        "Fisheries rule",
        "This Regulation lays down conditions for catching cod in the waters of the Member States. Vessels longer than \
         twelve metres must carry a logbook and report each landing within 48 hours. Nets with a mesh below 120 millimetres may not be \
         used from January to April, so that young fish can leave the spawning grounds. The Commission may \
         close an area when the quota of a Member State is used up. Inspectors shall have access to ports and markets.",
    ),
];
