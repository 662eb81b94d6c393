CASE
        WHEN typeof({time}) IN ('integer', 'real') OR ({time} GLOB '[0-9]*' AND {time} NOT GLOB '*[^0-9.]*') THEN CAST(round(CASE
            WHEN abs({time} + 0) >= 1e17 THEN {time} / 1e6
            WHEN abs({time} + 0) >= 1e14 THEN {time} / 1e3
            WHEN abs({time} + 0) >= 1e11 THEN {time} + 0
            ELSE {time} * 1e3 END) AS INTEGER)
        WHEN {time} GLOB '[0-9][0-9][0-9][0-9]-*' THEN CAST(round((julianday({time}) - 2440587.5) * 86400000.0) AS INTEGER)
            - CASE WHEN {time} GLOB '*Z' OR {time} GLOB '*z' OR {time} GLOB '*[+-][0-9][0-9]:[0-9][0-9]' THEN 0 ELSE {offset_ms} END
    END
