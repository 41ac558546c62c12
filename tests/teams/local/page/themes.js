// What Teams tells Microsoft's renderer: sizes, spacing and colours of its two themes.
const SIZES = { small: 12, default: 14, medium: 14, large: 18, extraLarge: 24 };
const WEIGHTS = { lighter: 300, default: 400, bolder: 600 };

const LIGHT = {
  surface: "#ffffff",
  line: "#e0e0e0",
  text: { default: "#242424", subtle: "#616161" },
  accent: "#4f52b2",
  good: "#237b4b",
  warning: "#835c00",
  attention: "#b10e1c",
  fills: { emphasis: "#f5f5f5", accent: "#e8ebfa", good: "#e7f2da", warning: "#fbf6d9", attention: "#fcf4f6" },
};

const DARK = {
  surface: "#292929",
  line: "#4d4d4d",
  text: { default: "#ffffff", subtle: "#adadad" },
  accent: "#9ea2ff",
  good: "#92c353",
  warning: "#f8d22a",
  attention: "#f9526b",
  fills: { emphasis: "#1f1f1f", accent: "#2f2f4a", good: "#13301f", warning: "#463100", attention: "#3e1f25" },
};

function style(theme, fill) {
  const plain = { default: theme.text.default, subtle: theme.text.subtle };
  const one = (colour) => ({ default: colour, subtle: colour });
  return {
    backgroundColor: fill,
    foregroundColors: {
      default: plain,
      dark: plain,
      light: one(theme.text.subtle),
      accent: one(theme.accent),
      good: one(theme.good),
      warning: one(theme.warning),
      attention: one(theme.attention),
    },
  };
}

function hostConfig(theme) {
  const { fills } = theme;
  return {
    fontTypes: {
      default: { fontFamily: "'Open Sans', sans-serif", fontSizes: SIZES, fontWeights: WEIGHTS },
      monospace: { fontFamily: "'Liberation Mono', monospace", fontSizes: SIZES, fontWeights: WEIGHTS },
    },
    lineHeights: { small: 16, default: 20, medium: 20, large: 24, extraLarge: 32 },
    spacing: { small: 8, default: 12, medium: 16, large: 20, extraLarge: 24, padding: 16 },
    separator: { lineThickness: 1, lineColor: theme.line },
    containerStyles: {
      default: style(theme, theme.surface),
      emphasis: style(theme, fills.emphasis),
      accent: style(theme, fills.accent),
      good: style(theme, fills.good),
      warning: style(theme, fills.warning),
      attention: style(theme, fills.attention),
    },
    actions: {
      maxActions: 6,
      spacing: "default",
      buttonSpacing: 8,
      showCard: { actionMode: "inline", inlineTopMargin: 16, style: "emphasis" },
      actionsOrientation: "horizontal",
      actionAlignment: "left",
    },
    factSet: {
      title: { weight: "bolder", wrap: true, maxWidth: 150 },
      value: { wrap: true },
      spacing: 12,
    },
    inputs: { label: { requiredInputs: { suffixColor: "attention" }, inputSpacing: "small" } },
  };
}

export const THEMES = {
  light: { css: LIGHT, host: hostConfig(LIGHT) },
  dark: { css: DARK, host: hostConfig(DARK) },
};
